import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import { findProgram } from '#toolbox/process/find-program.js'
import { SandboxProxy, SOCKET_NAME } from '#toolbox/sandbox/proxy.js'
import type { Lookup } from '#toolbox/web/options.js'
import { call, folderWith } from '../support.js'
import { formsHere, onlyPath } from './support.js'

const forms = await formsHere()
const hasSocat = (await findProgram('socat')) !== undefined

/** A web server of this machine that answers with the address that it was asked for. */
async function webServer(): Promise<number> {
  const server = createServer((request, response) =>
    response.end(`${request.method ?? ''} ${request.headers.host ?? ''} ${request.url ?? ''}`),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A request through the proxy, directly or by a tunnel, with the tools of every machine. */
const REQUEST = `const http = require('node:http')
const [address, how] = process.argv.slice(1)
const proxy = new URL(process.env.HTTP_PROXY), url = new URL(address)
const at = { host: proxy.hostname, port: proxy.port }
const show = (answer) => { let text = ''; answer.on('data', (d) => text += d).on('end', () => console.log(answer.statusCode, text)) }
// An agent of its own: the global one of newer versions of Node asks the proxy itself.
if (how === 'plain') http.get({ ...at, agent: new http.Agent(), path: address, headers: { host: url.host } }, show)
else http.request({ ...at, method: 'CONNECT', path: url.host }).on('connect', (answer, socket) => {
  if (answer.statusCode !== 200) { console.log(answer.statusCode); socket.destroy(); return }
  http.get({ createConnection: () => socket, path: url.pathname, headers: { host: url.host } }, show)
}).end()`

async function scripted(): Promise<string> {
  return folderWith({ 'request.cjs': REQUEST.replace('process.argv.slice(1)', 'process.argv.slice(2)') })
}

describe.skipIf(forms.length === 0).for(forms)('the network of the form $form', ({ only }) => {
  test.each(['plain', 'tunnel'])('BA-34 reaches named hosts through the proxy, and no others: %s', async (how) => {
    const port = await webServer()
    const root = await scripted()
    const tool = bash({
      root,
      sandbox: 'required',
      network: ['127.0.0.1', 'localhost'],
      readPaths: [process.execPath],
      ...only,
    })
    const node = `'${process.execPath}' request.cjs`
    const { content } = await call(tool, {
      command: `${node} http://127.0.0.1:${port}/a ${how}; ${node} http://localhost:${port}/b ${how}; ${node} http://other.test/ ${how}`,
    })
    expect(content).toContain(`200 GET 127.0.0.1:${port} /a\n`)
    expect(content).toContain(`200 GET localhost:${port} /b\n`)
    expect(content).toContain('403')
    expect(content).toContain('The sandbox refused connections to: other.test.')
  })

  test('BA-34 no connection goes past the proxy, and nothing of it is left', async () => {
    const port = await webServer()
    const tool = bash({ root: await folderWith(), sandbox: 'required', network: ['127.0.0.1'], ...only })
    const { content, metadata } = await call(tool, {
      command: `exec 3<>/dev/tcp/127.0.0.1/${port} || echo direct refused; env | grep -i proxy; ls -d ${tmpdir()}/thinharness-network-*`,
    })
    expect(content).toContain('direct refused')
    expect(content).toContain('HTTPS_PROXY=http://127.0.0.1:31280\n')
    expect(metadata).not.toHaveProperty('refused_hosts')
    const folder = /thinharness-network-\w+/.exec(content)?.[0] ?? ''
    expect(folder).not.toBe('')
    expect(readdirSync(tmpdir())).not.toContain(folder)
  })

  test.skipIf(!hasSocat)('BA-34 works without socat too', async () => {
    const port = await webServer()
    const root = await scripted()
    const programs = await folderWith()
    const { symlink } = await import('node:fs/promises')
    for (const name of ['bwrap', 'unshare', 'setpriv', 'sh', 'mount']) {
      const path = await findProgram(name)
      if (path !== undefined) await symlink(path, join(programs, name))
    }
    onlyPath(programs)
    const tool = bash({ root, sandbox: 'required', network: ['127.0.0.1'], readPaths: [process.execPath], ...only })
    const { content } = await call(tool, {
      command: `'${process.execPath}' request.cjs http://127.0.0.1:${port}/a plain`,
    })
    expect(content).toContain(`200 GET 127.0.0.1:${port} /a\n`)
  })
})

describe('the proxy of the sandbox', () => {
  async function ask(
    hosts: readonly string[],
    target: string,
    lookup: Lookup,
  ): Promise<{ status: number; text: string; refused: readonly string[] }> {
    const proxy = await SandboxProxy.open(hosts, lookup)
    onTestFinished(() => proxy.close())
    const { request } = await import('node:http')
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: join(proxy.folder, SOCKET_NAME), path: target })
      asked.on('error', reject)
      asked.on('response', (answer) => {
        let text = ''
        answer.on('data', (piece) => (text += String(piece)))
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text, refused: proxy.refused }))
      })
      asked.end()
    })
  }

  const lookup: Lookup = async (name) => {
    if (name === 'nowhere.test') throw new Error('unknown')
    return [{ address: '127.0.0.1', family: 4 }]
  }

  test('BA-35 a named host with a private address is refused, unless the address is named too', async () => {
    const port = await webServer()
    const address = `http://registry.test:${port}/a`
    expect(await ask(['registry.test'], address, lookup)).toEqual({
      status: 403,
      text: 'The sandbox refuses connections to `registry.test`: it has an address that is not public.\n',
      refused: ['registry.test'],
    })
    expect(await ask(['registry.test', '127.0.0.1'], address, lookup)).toMatchObject({ status: 200, refused: [] })
    expect(await ask(['*.test', '127.0.0.1'], address, lookup)).toMatchObject({ status: 200 })
  })

  test('BA-35 other spellings of an address are the same address', async () => {
    const port = await webServer()
    for (const host of ['2130706433', '0x7f.1', '127.1', '[::ffff:127.0.0.1]', 'localhost', '127.0.0.1.']) {
      expect(await ask(['registry.test'], `http://${host}:${port}/`, lookup), host).toMatchObject({ status: 403 })
    }
    expect(await ask(['127.0.0.1'], `http://127.1:${port}/`, lookup)).toMatchObject({ status: 200 })
  })

  test('BA-35 anything that is not HTTP is refused, and an unknown name is an error of the network', async () => {
    expect(await ask(['a.test'], 'ftp://a.test/', lookup)).toMatchObject({ status: 403, refused: [] })
    expect(await ask(['a.test'], '/etc/passwd', lookup)).toMatchObject({ status: 403 })
    expect(await ask(['nowhere.test'], 'http://nowhere.test/', lookup)).toMatchObject({ status: 502 })
  })
})
