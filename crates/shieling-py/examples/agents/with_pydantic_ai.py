"""An agent of pydantic-ai that works in the sandbox. The model is scripted, so that the example runs anywhere: give
`Agent` the name of a real one instead."""

import asyncio
import tempfile
from collections.abc import Iterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from shieling.adapters.pydantic_ai import ExecutionEnvironmentToolset, LocalEnvironment


def script() -> Iterator[ModelResponse]:
    yield ModelResponse(parts=[ToolCallPart("write_file", {"path": "a.txt", "content": "beta\nalpha\n"})])
    yield ModelResponse(parts=[ToolCallPart("shell", {"command": "sort a.txt | head -1"})])
    yield ModelResponse(parts=[TextPart("The first line is alpha.")])


async def main() -> None:
    answers = script()

    def model(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return next(answers)

    with tempfile.TemporaryDirectory() as workspace:
        toolset = ExecutionEnvironmentToolset(LocalEnvironment(workspace, environment="sandbox"))
        agent = Agent(FunctionModel(model), toolsets=[toolset])
        async with agent:
            result = await agent.run("What is the first line of a.txt, sorted?")
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind == "tool-return":
                print(part.tool_name, part.content)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
