"""Loads the package that model.py --aoti made and runs it once. usage: aoti_run.py FOLDER"""
import os
import sys

import torch
from safetensors.torch import load_file

folder = sys.argv[1]
model = torch._inductor.aoti_load_package(os.path.join(folder, "model.aoti.pt2"))
ids = load_file(os.path.join(folder, "inputs.safetensors"))["input_0"]
with torch.no_grad():
    print("mean", model(ids).double().mean().item(), flush=True)
