#!/usr/bin/python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""torch.nn.LSTM and torch.nn.GRU on what `espalier bench --keep FOLDER` wrote for a sequence model over vectors.

  torch_rnn.py FOLDER [--threads N]

The weights tell which of the two it is. Requests come on standard input (common.py); outputs of a root are the state
after the last vector. Laying the sequences of a minibatch side by side, [steps, sequences, inputs], is not timed; for Espalier it is.

Any PyTorch from 1.13 on; Debian's: packages python3-torch, python3-numpy, libopenblas0-pthread.
"""
import argparse
import sys

import torch

import common


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    s = common.Sequences(options.folder)
    unit = (torch.nn.LSTM if s.gates == 4 else torch.nn.GRU)(s.inputs, s.hidden)
    unit.load_state_dict({f"{kind}_{side}_l0": torch.from_numpy(getattr(s, f"{kind[0]}_{side}"))
                          for kind in ("weight", "bias") for side in ("ih", "hh")})
    print(f"torch {torch.__version__}, {options.threads} threads, BLAS {common.blas_of(torch)}", file=sys.stderr)
    with torch.inference_mode():
        unit.eval()
        common.serve(len(s.x), unit, lambda x: unit(x)[0][-1].numpy(),
                     lambda first, count: torch.from_numpy(s.minibatch(first, count)))


if __name__ == "__main__":
    main()
