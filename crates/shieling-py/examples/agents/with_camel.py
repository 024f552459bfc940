"""An agent of CAMEL that works in the sandbox. The model is scripted, so that the example runs anywhere: give
`ChatAgent` a model of `ModelFactory` instead."""

import json
import tempfile
from typing import Any

from camel.agents import ChatAgent
from camel.models.stub_model import StubModel
from camel.types import ChatCompletion, ModelType

from shieling.adapters.camel import TerminalToolkit


class ScriptedModel(StubModel):
    def __init__(self, *answers: dict[str, Any]) -> None:
        super().__init__(ModelType.STUB)
        self.answers = list(answers)

    def _run(self, messages: Any, response_format: Any = None, tools: Any = None) -> Any:
        for message in messages:
            if message["role"] == "tool" and not self.answers[1:]:
                print(message["content"].strip())
        answer = self.answers.pop(0)
        reason = "tool_calls" if "tool_calls" in answer else "stop"
        message = {"role": "assistant", "content": "", **answer}
        choice = {"index": 0, "finish_reason": reason, "message": message}
        usage = {"completion_tokens": 1, "prompt_tokens": 1, "total_tokens": 2}
        completion = {"id": "1", "model": "scripted", "object": "chat.completion", "created": 1}
        return ChatCompletion.model_validate({**completion, "choices": [choice], "usage": usage})


def call(number: int, **arguments: Any) -> dict[str, Any]:
    function = {"name": "shell_exec", "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        with TerminalToolkit(working_directory=workspace, environment="sandbox") as toolkit:
            model = ScriptedModel(
                call(1, id="a", command=r"printf 'beta\nalpha\n' > a.txt", block=True, timeout=20.0),
                call(2, id="b", command="sort a.txt | head -1", block=True, timeout=20.0),
                {"content": "The first line is alpha."},
            )
            agent = ChatAgent("You work in a shell.", model=model, tools=[*toolkit.get_tools()])
            print(agent.step("What is the first line of a.txt, sorted?").msg.content)


if __name__ == "__main__":
    main()
