"""Drives an official Python MCP client over pipes, whichever major version this interpreter has.

mcp_driver.py URL KEY MODE. Prints one line about the connection, then answers each line
[tool, arguments] of standard input with the tool's result, until that ends.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from importlib.metadata import version


def dump(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


@asynccontextmanager
async def connect(url, key, mode):
    headers = {"Authorization": f"Bearer {key}"}
    if version("mcp") in ("1.9.4", "1.10.1"):
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(url, headers=headers) as (reader, writer, _):
            async with ClientSession(reader, writer) as session:
                begun = await session.initialize()
                yield session, begun.protocolVersion
    elif version("mcp").startswith("1."):
        import httpx
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with httpx.AsyncClient(headers=headers) as http:
            async with streamable_http_client(url, http_client=http) as (reader, writer, _):
                async with ClientSession(reader, writer) as session:
                    begun = await session.initialize()
                    yield session, begun.protocolVersion
    else:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers=headers) as http:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                yield client, client.protocol_version


async def main(url, key, mode):
    async with connect(url, key, mode) as (client, protocol):
        tools = dump(await client.list_tools())["tools"]
        about = {"client": version("mcp"), "protocol": protocol, "tools": tools}
        print(json.dumps(about), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            tool, arguments = json.loads(line)
            print(json.dumps(dump(await client.call_tool(tool, arguments))), flush=True)


asyncio.run(main(*sys.argv[1:]))
