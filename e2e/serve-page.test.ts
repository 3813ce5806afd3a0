import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { executablePath } from '../tests/support/browser.js'
import { temporaryFolder } from '../tests/support/folder.js'

const HOME = fileURLToPath(new URL('..', import.meta.url))

/** An agent that asks before it pays, and shows what it is told. */
const CONFIG = `
import { defineTool } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
const pay = defineTool({
  name: 'pay', description: 'Pays.', parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
  requiresApproval: true, handler: ({ amount }) => 'paid ' + amount,
})
const answer = ({ transcript }) => {
  const text = transcript.findLast(({ role }) => role === 'user').content[0].text
  if (transcript.at(-1).role === 'user' && text.includes('Pay')) return { calls: [{ name: 'pay', arguments: { amount: 5 } }] }
  return 'Answer to: ' + text
}
export default { model: new ScriptedModel().always(answer), tools: [pay] }
`

let server: ChildProcess
let browser: Browser
let address: string

async function start(): Promise<string> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(HOME, join(folder, 'node_modules', 'thinharness'), 'dir')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'thinharness.config.js'), CONFIG)
  const program = join(HOME, 'dist', 'command', 'main.js')
  server = spawn(process.execPath, [program, 'serve', '--port', '0'], { cwd: folder })
  return new Promise((resolve, reject) => {
    server.once('close', () => reject(new Error('The server ended.')))
    if (server.stdout !== null) createInterface(server.stdout).once('line', resolve)
  })
}

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Waits until a value of the page fits. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000 })

describe.skipIf(executablePath === undefined)('the chat page of `serve` in Chromium', () => {
  beforeAll(async () => {
    address = await start()
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  })

  afterAll(async () => {
    await browser.close()
    server.kill('SIGTERM')
  })

  /** A page; what it complains of, and the other servers that it asks, are kept. */
  async function open(): Promise<{ page: Page; complaints: string[]; asked: string[] }> {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const [complaints, asked]: [string[], string[]] = [[], []]
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    page.on('pageerror', (error) => void complaints.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith(address)) asked.push(request.url())
    })
    await page.goto(address)
    return { page, complaints, asked }
  }

  async function say(page: Page, text: string): Promise<void> {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.getByRole('button', { name: /^(Send|Queue)$/ }).click()
  }

  const last = (page: Page) => page.locator('.message.assistant .text').last()

  test('a message is answered, an approval is given, and a reload shows the same conversation', async () => {
    const { page, complaints, asked } = await open()
    await say(page, 'Hello <b>there</b>')
    await eventually(() => last(page).innerText()).toBe('Answer to: Hello <b>there</b>')
    await say(page, 'Pay the bill.')
    await page.getByRole('button', { name: 'Approve' }).click()
    await eventually(() => last(page).innerText()).toBe('Answer to: Pay the bill.')
    const before = await page.locator('#messages').innerText()
    await page.reload()
    await eventually(() => page.locator('#messages').innerText()).toBe(before)
    // A conversation that has no message yet is not found; nothing else may fail.
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
    expect(asked).toEqual([])
  })

  test('runs no script and loads no picture that is not its own', async () => {
    const { page } = await open()
    const blocked = await page.evaluate(`(async () => {
      const found = []
      document.addEventListener('securitypolicyviolation', (event) => found.push(event.effectiveDirective))
      const script = Object.assign(document.createElement('script'), { textContent: 'window.owned = true' })
      const picture = Object.assign(document.createElement('img'), { src: 'https://evil.example/x.png' })
      document.body.append(script, picture)
      await fetch('https://evil.example/').catch(() => undefined)
      while (found.length < 3) await new Promise((resolve) => requestAnimationFrame(resolve))
      return { found: found.sort(), owned: 'owned' in window }
    })()`)
    expect(blocked).toEqual({ found: ['connect-src', 'img-src', 'script-src-elem'], owned: false })
  })
})
