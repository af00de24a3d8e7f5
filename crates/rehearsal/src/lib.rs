//! A scripted model, served over HTTP in the OpenAI streaming wire format.
