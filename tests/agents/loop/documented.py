"""The exact texts of the document on message expiration, as settings of the mechanism `expire`."""

from __future__ import annotations

DOCUMENTED_TEXTS = {
    "annotation": "...\n\n[Compacted: showing first {kept} of {length} characters. "
    "Agent can request expansion if needed.]",
    "preamble": "[AI Summary of {length} chars. Agent can request full expansion if needed.]\n\n",
    "bare_annotation": "...\n\n[Compacted: showing first {kept} of {length} characters.]",
    "bare_preamble": "[AI Summary of {length} chars.]\n\n",
    "stub": "[result expired after {turns} turns]",
    "bare_stub": "[result expired after {turns} turns]",
}
