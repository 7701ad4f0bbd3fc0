from __future__ import annotations

from foveate.requests.usage import continued


def test_outputs_add_up_and_the_last_prompt_counts():
    first = {
        "prompt_tokens": 90,
        "completion_tokens": 5,
        "total_tokens": 95,
        "prompt_tokens_details": {"cached_tokens": 80},
    }
    second = {
        "prompt_tokens": 120,
        "completion_tokens": 7,
        "total_tokens": 127,
        "prompt_tokens_details": {"cached_tokens": 90},
    }
    assert continued(first, second) == {**second, "completion_tokens": 12, "total_tokens": 132}


def test_details_of_the_output_add_up():
    first = {
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "server_tool_use": {"web_search_requests": 1},
    }
    second = {"output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 4}, "input_tokens": 9}
    assert continued(first, second) == {
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 7},
        "server_tool_use": {"web_search_requests": 1},
        "input_tokens": 9,
    }


def test_nothing_before_changes_nothing():
    assert continued({}, {"input_tokens": 9, "output_tokens": 1}) == {"input_tokens": 9, "output_tokens": 1}
    assert continued({"input_tokens": 9}, None) == {"input_tokens": 9}
