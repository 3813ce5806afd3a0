import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { project, shell, slowCall, start } from './shell.js'
import type { Ended, Running } from './shell.js'

interface Served extends Running {
  readonly address: string
}

/** `thinharness serve` as a process of its own; it is ended with the test. */
async function serve(folder: string, ...args: readonly string[]): Promise<Served> {
  const running = start(['serve', '--port', '0', ...args], { folder })
  onTestFinished(() => {
    running.child.kill('SIGKILL')
  })
  const { stdout } = running.child
  const address = await new Promise<string>((resolve, reject) => {
    if (stdout !== null) createInterface(stdout).once('line', resolve)
    running.ended.then(({ stderr }) => reject(new Error(`The server ended: ${stderr}`)), reject)
  })
  return { ...running, address }
}

async function ended({ child, ended: end }: Running, signal: NodeJS.Signals): Promise<Ended> {
  child.kill(signal)
  return end
}

function post(address: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'content-type': 'application/json', ...headers }
  return fetch(address, { method: 'POST', headers: all, body: JSON.stringify(body) })
}

/** The status of a request whose `Host` and `Origin` are chosen, which `fetch` does not allow. */
function statusOf(address: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(address, { headers }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end()
  })
}

describe('serve', () => {
  test('CL-18 listens on this machine only, under a random token in the address that it prints', async () => {
    const folder = project()
    const [one, other] = await Promise.all([serve(folder), serve(folder)])
    expect(one.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}\/$/)
    expect(new URL(one.address).pathname).not.toBe(new URL(other.address).pathname)
    const page = await fetch(one.address)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await page.text()).toMatch(
      /<meta http-equiv="content-security-policy" content="default-src 'none'; script-src 'sha256-/,
    )
    const { origin, port } = new URL(one.address)
    for (const path of ['/', '/api/threads', `/${'0'.repeat(32)}/api/threads`])
      expect((await fetch(`${origin}${path}`)).status).toBe(404)
    const api = `${one.address}api/threads`
    expect(await statusOf(api, {})).toBe(200)
    expect(await statusOf(api, { host: `localhost:${port}`, origin: `http://localhost:${port}` })).toBe(200)
    expect(await statusOf(api, { host: `evil.example:${port}` })).toBe(403)
    expect(await statusOf(api, { origin: 'https://evil.example' })).toBe(403)
    expect(await statusOf(one.address, { origin: 'null' })).toBe(403)
    expect(await ended(one, 'SIGTERM')).toMatchObject({ code: 0, stdout: `${one.address}\n` })
  })

  test.each([
    [['--host', '0.0.0.0'], 'give a secret by `--auth`'],
    [['--host', '0.0.0.0', '--auth', 'short'], 'at least 12 characters, got 5'],
    [['--host', '0.0.0.0', '--auth'], '`$THINHARNESS_AUTH`, which is not set'],
    [
      ['--config', 'harness.js', '--max-cost', '1'],
      '`--max-cost` has no effect on a harness that the config file exports',
    ],
  ])('CL-18 %j is refused before anything is served', async (args, said) => {
    const folder = project()
    const model = `import { Harness } from 'thinharness'\nimport { ScriptedModel } from 'thinharness/testing'\n`
    writeFileSync(join(folder, 'harness.js'), `${model}export default new Harness({ model: new ScriptedModel() })`)
    const { code, stdout, stderr } = await shell(['serve', '--port', '0', ...args], { folder })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(said)
  })

  test('CL-18 with `--auth` each request must bring the secret, as a password or as a token', async () => {
    const { address } = await serve(project(), '--auth', 'correct horse battery')
    const status = async (authorization?: string): Promise<number> =>
      (await fetch(`${address}api/threads`, { headers: authorization === undefined ? {} : { authorization } })).status
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
    expect((await fetch(address)).headers.get('www-authenticate')).toMatch(/^Basic /)
    expect(await status()).toBe(401)
    expect(await status(basic('me:wrong horse battery'))).toBe(401)
    expect(await status('Bearer correct')).toBe(401)
    expect(await status(basic('me:correct horse battery'))).toBe(200)
    const { address: other } = await serve(project(), '--auth', 'correct-horse-battery')
    expect((await fetch(other, { headers: { authorization: 'bearer correct-horse-battery' } })).status).toBe(200)
  })

  test('answers clients of each protocol', async () => {
    const { address } = await serve(project())
    const api = `${address}api`
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'one' }] }
    expect(await (await post(`${api}/chat`, { id: 'a', messages: [message] })).text()).toContain(
      '"delta":"Answer to: one"',
    )
    const response = await post(`${api}/v1/responses`, { model: 'any', input: 'two' })
    expect(JSON.stringify(await response.json())).toContain('Answer to: two')
    const input = { threadId: 'b', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} }
    const agUi = await post(`${api}/agui`, { ...input, messages: [{ id: 'm1', role: 'user', content: 'three' }] })
    expect(await agUi.text()).toContain('Answer to: three')
    await post(`${api}/threads/c/messages`, { text: 'four' })
    const events = await fetch(`${api}/threads/c/events`)
    let seen = ''
    for await (const piece of events.body ?? []) {
      seen += Buffer.from(piece).toString()
      if (seen.includes('run_completed')) break
    }
    expect(seen).toContain('Answer to: four')
    const { threads } = (await (await fetch(`${api}/threads`)).json()) as { threads: readonly { threadId: string }[] }
    expect(threads.map(({ threadId }) => threadId)).toEqual(expect.arrayContaining(['a', 'c']))
  })

  test('Ctrl-C leaves the runs in progress, and `recover` goes on with them', async () => {
    const folder = project()
    const server = await serve(folder)
    const { runId } = (await (await post(`${server.address}api/threads/t/messages`, { text: 'slow' })).json()) as {
      runId: string
    }
    await slowCall(folder)
    const { stderr: said } = server.child
    const closing = new Promise<void>((resolve) => {
      said?.on('data', (bytes: Buffer) => {
        if (bytes.includes('Closing')) resolve()
      })
    })
    server.child.kill('SIGINT')
    await closing
    // The tool in progress may end.
    writeFileSync(join(folder, 'go'), '')
    const { code, stderr } = await server.ended
    expect(code).toBe(130)
    expect(stderr).toContain('`thinharness recover` goes on with them')
    const listed = await shell(['list', '--status', 'interrupted'], { folder })
    expect(listed.stdout).toContain(runId)
    expect(await shell(['recover'], { folder })).toMatchObject({ code: 0, stdout: 'Answer to: slow\n' })
  })

  test('a port that is taken is named', async () => {
    const folder = project()
    const { port } = new URL((await serve(folder)).address)
    const { code, stderr } = await shell(['serve', '--port', port], { folder })
    expect(code).toBe(2)
    expect(stderr).toContain(`Cannot listen on 127.0.0.1, port ${port}`)
  })
})
