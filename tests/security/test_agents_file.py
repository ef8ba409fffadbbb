"""A file of agents that somebody else wrote cannot keep the machine busy."""

import pytest

from sessions_app.agents_file import InvalidAgents, read_agents

LINES = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 9)]
BOMB = "\n".join(["x0: &x0 [a, a, a, a, a, a, a, a, a, a]", *LINES])


@pytest.mark.parametrize(
    "text",
    [
        f"{BOMB}\nagents: {{a: {{model: *x8}}}}",
        f"{BOMB}\nagents: {{a: {{model: 'demo:script', settings: {{k: *x8}}}}}}",
        "agents: &a {a: *a}",
        "agents: {a: {settings: &a [*a]}}",
    ],
)
def test_a_file_that_stands_for_more_than_it_says_is_refused_with_its_place(text):
    with pytest.raises(InvalidAgents, match=r"(?s)more than 200,000 values.*line \d"):
        read_agents(text)


def test_a_part_that_is_repeated_by_an_alias_is_read():
    text = "agents: {a: &a {model: 'demo:script', instructions: Hi}, b: *a}"
    found, errors = read_agents(text)
    assert (errors, [agent.name for agent in found.agents]) == ([], ["a", "b"])
