import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'
import { executablePath } from '../tests/support/browser.js'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const folder = temporaryFolder()

let server: ChildProcess
let browser: Browser
let address: string

async function start(): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: join(folder, 'chat'), PORT: '0' }
  server = spawn(process.execPath, ['.build/examples/run.js', 'chat'], { env })
  return new Promise((resolve, reject) => {
    let errors = ''
    server.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    server.once('close', () => reject(new Error(`The server ended: ${errors}`)))
    if (server.stdout !== null)
      createInterface(server.stdout).on('line', (line) => {
        const found = /^Open (http:\S+)$/.exec(line)?.[1]
        if (found !== undefined) resolve(found)
      })
  })
}

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Waits until a value of the page fits. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000 })

interface Findings {
  readonly violations: readonly { readonly id: string }[]
}

describe.skipIf(executablePath === undefined)('the chat page in Chromium', () => {
  beforeAll(async () => {
    address = await start()
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  })

  afterAll(async () => {
    await browser.close()
    server.kill('SIGTERM')
  })

  async function open(
    options: Parameters<Browser['newContext']>[0] = {},
  ): Promise<{ page: Page; context: BrowserContext }> {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.goto(address)
    return { page, context }
  }

  async function say(page: Page, text: string): Promise<void> {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.getByRole('button', { name: /^(Send|Queue)$/ }).click()
  }

  const last = (page: Page) => page.locator('.message.assistant .text').last()
  const status = (page: Page) => page.getByRole('status')
  const shown = (page: Page) => page.locator('#messages').innerText()

  test('a tool call is shown as it runs, and its result is read', async () => {
    const { page } = await open()
    await say(page, 'Where is my order?')
    await page.getByText('look_up_order — running').waitFor()
    await page.getByText('look_up_order — done').waitFor()
    await eventually(() => last(page).innerText()).toContain('arrived broken')
    await eventually(() => status(page).innerText()).toBe('Ready')
  })

  test('an approval with edited arguments runs with these', async () => {
    const { page } = await open()
    await say(page, 'A refund, please.')
    const edited = page.getByLabel('Arguments of refund')
    await edited.fill('{ "order": "7", "cents": 500 }')
    await page.getByRole('button', { name: 'Approve' }).click()
    await eventually(() => last(page).innerText()).toContain('Refunded 5.00 euros of order 7.')
    await say(page, 'Another refund.')
    await page.getByLabel('Reason for a rejection').fill('Not today.')
    await page.getByRole('button', { name: 'Reject' }).click()
    await eventually(() => last(page).innerText()).toContain('Not today.')
  })

  test('a question, then a plan with tasks in the next mode', async () => {
    const { page } = await open()
    await say(page, 'Ask me something.')
    await page.getByLabel('Order 8').check()
    await page.getByRole('button', { name: 'Send answer' }).click()
    await eventually(() => last(page).innerText()).toContain('The user answered: Order 8')
    await say(page, 'Make a plan.')
    await page.getByRole('button', { name: 'Approve plan' }).click()
    await page.getByText('◐ Refunding the cups').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('● Write to the customer').waitFor()
    await eventually(() => last(page).innerText()).toBe('Everything is done.')
  })

  test('XL-01 a reload in the middle of an answer, a second tab and a cut connection end as an undisturbed page does', async () => {
    const { page, context } = await open()
    await say(page, 'Tell me a story.')
    await eventually(() => last(page).innerText()).toContain('Order 7 was')
    await page.reload()
    const second = await context.newPage()
    await second.goto(page.url())
    await eventually(() => last(second).innerText()).toContain('Order 7 was')
    await context.setOffline(true)
    await context.setOffline(false)
    await eventually(() => last(page).innerText()).toContain('Nobody has answered yet.')
    await eventually(() => last(second).innerText()).toContain('Nobody has answered yet.')
    const undisturbed = await open()
    await undisturbed.page.goto(page.url())
    await eventually(() => shown(undisturbed.page)).toContain('Nobody has answered yet.')
    await eventually(() => shown(page)).toBe(await shown(undisturbed.page))
    await eventually(() => shown(second)).toBe(await shown(undisturbed.page))
  })

  test('stop ends the answer; a message that was queued waits until it is sent', async () => {
    const { page } = await open()
    await say(page, 'Tell me a story.')
    await eventually(() => last(page).innerText()).toContain('Order 7 was')
    await say(page, 'Where is my order?')
    await page.locator('#queue').getByText('Where is my order?').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped.').waitFor()
    await page.getByRole('button', { name: 'Send the queue' }).click()
    await page.getByText('look_up_order — done').waitFor()
  })

  test('an answer that was stopped is made again by one button', async () => {
    const { page } = await open()
    await say(page, 'Tell me a story.')
    await eventually(() => last(page).innerText()).toContain('Order 7 was')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped.').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Stopped.').waitFor({ state: 'detached' })
    await eventually(() => status(page).innerText()).toBe('Ready')
    expect(await page.locator('.message.user').count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  test.each([1200, 360])(
    'at a width of %i px, the button that sends stays in its place when an answer ends',
    async (width) => {
      const { page } = await open({ viewport: { width, height: 740 } })
      const send = page.getByRole('button', { name: /^(Send|Queue)$/ })
      const idle = await send.boundingBox()
      await say(page, 'Tell me a story.')
      await page.getByRole('button', { name: 'Queue' }).waitFor()
      expect(await send.boundingBox()).toEqual(idle)
      await eventually(() => status(page).innerText()).toBe('Ready')
      expect(await send.boundingBox()).toEqual(idle)
    },
  )

  test.each(['light', 'dark'] as const)(
    'axe finds nothing in the %s theme, at the width of a phone too',
    async (colorScheme) => {
      const { page } = await open({ colorScheme })
      await say(page, 'A refund, please.')
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      for (const width of [1200, 360]) {
        await page.setViewportSize({ width, height: 740 })
        const found = await page.evaluate<Findings>(`${axe}; axe.run()`)
        expect(found.violations.map(({ id }) => id)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      }
    },
  )

  test('the keyboard alone is enough', async () => {
    const { page } = await open()
    await page.getByLabel('Message', { exact: true }).focus()
    await page.keyboard.type('A refund, please.')
    await page.keyboard.press('Enter')
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await approve.focus()
    await page.keyboard.press('Enter')
    await eventually(() => last(page).innerText()).toContain('Refunded 64.50 euros')
  })
})
