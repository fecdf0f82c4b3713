// Drives an official TypeScript MCP client over pipes, as mcp_driver.py does the Python ones.
//
// node mcp_driver.mjs MODULES URL KEY (sdk | default | auto)
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [, , modules, url, key, mode] = process.argv
const require = createRequire(`${modules}/driver.js`)
const load = (name) => import(pathToFileURL(require.resolve(name)))
const say = (value) => process.stdout.write(JSON.stringify(value) + '\n')

const old = mode === 'sdk'
const name = old ? '@modelcontextprotocol/sdk' : '@modelcontextprotocol/client'
const { Client } = await load(old ? `${name}/client/index.js` : name)
const { StreamableHTTPClientTransport } = await load(old ? `${name}/client/streamableHttp.js` : name)

const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } }
})
const options = mode === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {}
const client = new Client({ name: 'artifactd-tests', version: '1' }, options)
await client.connect(transport)
const protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion
const { version } = JSON.parse(readFileSync(`${modules}/${name}/package.json`))
say({ client: version, protocol, tools: (await client.listTools()).tools })
for await (const line of createInterface({ input: process.stdin })) {
  const [tool, args] = JSON.parse(line)
  say(await client.callTool({ name: tool, arguments: args }))
}
await client.close()
