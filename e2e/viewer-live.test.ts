import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Harness, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHub } from 'thinharness/ui'
import { viewerHandler } from 'thinharness/viewer'
import type { LiveViewerOptions } from 'thinharness/viewer'
import { serveLoopback } from '#command/serve/loopback.js'
import type { Loopback } from '#command/serve/loopback.js'
import { gate, harnessOf, tool } from '../tests/harness/support.js'
import type { Gate } from '../tests/harness/support.js'
import { collect } from '../tests/support/collect.js'
import { textOf } from '../tests/viewer/support.js'
import { executablePath } from '../tests/support/browser.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Waits until a value of the page fits. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000 })

interface Steps {
  readonly log: LogStore
  readonly harness: Harness
  /** Each lets the next step of the run end. */
  readonly gates: readonly Gate[]
}

/** A run of so many steps, each of which waits until it is let go on. */
function steps(count: number): Steps {
  const gates = Array.from({ length: count }, () => gate())
  const log = memoryLog()
  const model = new ScriptedModel()
  for (let step = 0; step < count; step++) model.calls('step', { step })
  model.says('The journey is over.')
  const waits = tool('step', ({ step }) => gates[Number(step)]?.opened.then(() => `step ${Number(step)} is done`))
  return { log, gates, harness: harnessOf({ log, model, tools: [waits], limits: { modelRequests: 200 } }) }
}

describe.skipIf(executablePath === undefined)('a live page in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  })
  afterAll(() => browser.close())

  async function serve(log: LogStore, options: LiveViewerOptions, again?: Loopback): Promise<Loopback> {
    const show = viewerHandler(log, { ...options, authorize: () => ({ resourceId: 'local' }) })
    const token = again === undefined ? undefined : new URL(again.address).pathname.replaceAll('/', '')
    const server = await serveLoopback({ handle: (request) => show(request), port: again?.port ?? 0, token })
    onTestFinished(() => server.close())
    return server
  }

  async function open(address: string): Promise<{ readonly page: Page; readonly requests: readonly string[] }> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 700 } })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    await page.goto(address)
    await page.locator('.row').first().waitFor()
    return { page, requests }
  }

  const rows = (page: Page): Promise<string> => page.locator('.list').innerText()
  const connection = (page: Page) => page.getByRole('status').filter({ hasText: /live|lost|ended/ })

  test('VW-23 follows the run, and after a lost connection catches up without a gap', async () => {
    const { log, harness, gates } = steps(6)
    const hub = createHub({ log })
    await hub.start(harness.stream('Go on a journey.', { runId: 'run_1', deltas: true }))
    const first = await serve(log, { runId: 'run_1', hub })
    const { page, requests } = await open(first.address)
    await eventually(() => connection(page).innerText()).toContain('live')
    gates[0]?.open()
    await eventually(() => rows(page)).toContain('Turn 2\n')
    await first.close()
    await eventually(() => connection(page).innerText()).toContain('lost')
    // Nobody sees these.
    for (const each of gates.slice(1, 4)) each.open()
    await eventually(async () => (await log.inspect({ kind: 'run', id: 'run_1' }))?.usage.modelRequests).toBe(5)
    expect(await rows(page)).not.toContain('Turn 4\n')
    await serve(log, { runId: 'run_1', hub }, first)
    await eventually(() => rows(page)).toContain('Turn 5\n')
    for (const each of gates.slice(4)) each.open()
    await eventually(() => rows(page)).toContain('The journey is over.')
    await eventually(() => connection(page).innerText()).toContain('ended')
    // What the page has is the log, byte for byte, though it was loaded in the middle.
    const saving = page.waitForEvent('download')
    await page.keyboard.press('s')
    const path = await (await saving).path()
    expect(readFileSync(path, 'utf8')).toBe(textOf(await collect(log.export('run_1'))))
    expect(
      requests.filter((url) => !url.startsWith(`http://127.0.0.1:${first.port}/`) && !url.startsWith('blob:')),
    ).toEqual([])
  })

  test('VW-23 keeps its place while rows are added, and stays at the end if it is there', async () => {
    const { log, harness, gates } = steps(60)
    const hub = createHub({ log })
    for (const each of gates.slice(0, 40)) each.open()
    await hub.start(harness.stream('Go on a journey.', { runId: 'run_1' }))
    await eventually(async () => (await log.inspect({ kind: 'run', id: 'run_1' }))?.usage.modelRequests).toBe(41)
    const { address } = await serve(log, { runId: 'run_1', hub })
    const { page } = await open(address)
    const scrolled = (): Promise<number> => page.evaluate(`document.querySelector('.list').scrollTop`)
    await page.keyboard.press('Home')
    await eventually(scrolled).toBeLessThan(40)
    const top = await page.locator('.row').first().innerText()
    for (const each of gates.slice(40, 50)) each.open()
    await eventually(() =>
      page.locator('.list').evaluate((list) => (list as unknown as { readonly scrollHeight: number }).scrollHeight),
    ).toBeGreaterThan(1500)
    await eventually(async () => (await log.inspect({ kind: 'run', id: 'run_1' }))?.usage.modelRequests).toBe(51)
    expect(await page.locator('.row').first().innerText()).toBe(top)
    await page.keyboard.press('End')
    await eventually(() => rows(page)).toContain('Turn 51\n')
    for (const each of gates.slice(50)) each.open()
    await eventually(() => rows(page)).toContain('The journey is over.')
  })

  test('VW-23 lets a person approve a call, if its server says so', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('pay', { amount: 5 }).says('It is paid.')
    const harness = harnessOf({ log, model, tools: [tool('pay', () => 'paid', { requiresApproval: true })] })
    await harness.run('Pay.', { runId: 'run_1' })
    const { address } = await serve(log, {
      runId: 'run_1',
      answers: (runId, answers) => harness.streamResumeRun(runId, answers, { log }),
    })
    const { page } = await open(address)
    await page.locator('.row').filter({ hasText: '{"amount":5}' }).first().click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await eventually(() => rows(page)).toContain('It is paid.')
    const { page: again } = await open((await serve(log, { runId: 'run_1' })).address)
    await again.locator('.row').filter({ hasText: '{"amount":5}' }).first().click()
    expect(await again.getByRole('button', { name: 'Approve' }).count()).toBe(0)
  })
})
