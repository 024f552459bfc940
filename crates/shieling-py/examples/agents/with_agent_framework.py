"""An agent of Microsoft's Agent Framework that works in the sandbox. The model is scripted, so that the example runs
anywhere: give `Agent` a real chat client instead."""

import asyncio
import tempfile
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

from shieling.adapters.agent_framework import LocalShellTool, ShellPolicy


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, *answers: Message) -> None:
        super().__init__()
        self.answers = list(answers)

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        async def respond() -> ChatResponse:
            return ChatResponse(messages=[self.answers.pop(0)])

        return respond()


def call(number: int, command: str) -> Message:
    content = Content.from_function_call(call_id=str(number), name="run_shell", arguments={"command": command})
    return Message(role="assistant", contents=[content])


async def main() -> None:
    client = ScriptedClient(
        call(1, r"printf 'beta\nalpha\n' > a.txt; export FILE=a.txt"),
        call(2, "sort $FILE | head -1"),
        Message(role="assistant", contents=["The first line is alpha."]),
    )
    with tempfile.TemporaryDirectory() as workspace:
        async with LocalShellTool(
            workdir=workspace,
            environment="sandbox",
            approval_mode="never_require",
            acknowledge_unsafe=True,
            policy=ShellPolicy(denylist=[r"\bgit push\b"]),
        ) as shell:
            response = await Agent(client=client, tools=[shell.as_function()]).run("The first line of a.txt, sorted?")
    for message in response.messages:
        for content in message.contents:
            if content.type == "function_result":
                print(content.result)
    print(response.text)


if __name__ == "__main__":
    asyncio.run(main())
