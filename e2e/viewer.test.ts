import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'
import { PageWriter, checkout, checkoutAgain, logsOf, longLog } from './viewer/pages.js'
import type { PageLog } from './viewer/pages.js'
import { executablePath } from '../tests/support/browser.js'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const folder = temporaryFolder()

let browser: Browser
let pages: PageWriter

/** Waits until a value of the page fits. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000 })

interface Findings {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

interface Opened {
  readonly page: Page
  readonly context: BrowserContext
  /** Addresses that the page asked for. */
  readonly requests: readonly string[]
  /** Errors, and what its policy refused. */
  readonly complaints: readonly string[]
}

async function open(address: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const [requests, complaints]: [string[], string[]] = [[], []]
  page.on('request', (request) => requests.push(request.url()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(address)
  await page.locator('.row, .runs, .message').first().waitFor()
  return { page, context, requests, complaints }
}

const chosen = (page: Page) => page.locator('.row.chosen')
const panel = (page: Page) => page.getByRole('complementary', { name: 'Details' })
const rows = (page: Page) => page.locator('.row')
/** The value of an expression about the list of rows. */
const ofList = (page: Page, expression: string) =>
  page.evaluate<number>(`{ const list = document.querySelector('.list'); ${expression} }`)

/** How much two pictures differ, in steps of 256: the mean of all fields of 16 by 16 pixels, and the most of one. */
const DIFFERENCE = `async (...pictures) => {
  const fields = await Promise.all(pictures.map(async (picture) => {
    const image = new Image()
    image.src = 'data:image/png;base64,' + picture
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = image.width / 16
    canvas.height = image.height / 16
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    context.drawImage(image, 0, 0, canvas.width, canvas.height)
    return context.getImageData(0, 0, canvas.width, canvas.height).data
  }))
  const differences = [...fields[0]].map((value, index) => Math.abs(value - fields[1][index]))
  return { mean: differences.reduce((sum, each) => sum + each, 0) / differences.length, most: Math.max(...differences) }
}`

async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}

async function lookFor(page: Page, text: string): Promise<void> {
  await page.keyboard.press('/')
  await page.getByRole('searchbox').fill(text)
}

/** The logs with other members in their events of a kind. */
function changed(
  logs: readonly PageLog[],
  kind: string,
  change: (event: Record<string, unknown>) => object,
): PageLog[] {
  return logs.map((log) => {
    const texts = log.text.trimEnd().split('\n')
    const others = texts.map((line) => {
      const event = JSON.parse(line) as Record<string, unknown>
      return event['kind'] === kind ? JSON.stringify({ ...event, ...change(event) }) : line
    })
    return { ...log, text: `${others.join('\n')}\n` }
  })
}

describe.skipIf(executablePath === undefined)('the run viewer in Chromium', () => {
  beforeAll(async () => {
    pages = new PageWriter(folder)
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  })

  afterAll(() => browser.close())

  test('VW-01 the page opens from a file, asks for nothing else, and allows its own script and style only', async () => {
    const address = await pages.write('file', checkout)
    const { page, requests, complaints } = await open(address)
    await page.getByText("I'll run the failing test first.").waitFor()
    expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([address])
    expect(complaints).toEqual([])
    const policy = await page.locator('meta[http-equiv]').getAttribute('content')
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src 'sha256-[\w+/=]+'; img-src data: blob:;/,
    )
    expect(policy).toContain("connect-src 'none'")
    const isRefused = await page.evaluate(() =>
      fetch('https://example.com/').then(
        () => false,
        () => true,
      ),
    )
    expect(isRefused).toBe(true)
    expect(Buffer.byteLength(pages.template)).toBeLessThan(300_000)
  })

  test('VW-04 VW-05 VW-06 a log of 5,000 turns opens: few rows are in the document, no event is parsed until it is looked at', async () => {
    const { page } = await open(await pages.write('long', [longLog(5000, 1300)]))
    await page.getByText('Page 1 comes next.').waitFor()
    expect(await rows(page).count()).toBeLessThan(300)
    expect(await page.evaluate('viewerStore.book.parsed')).toBeLessThan(10)
    await press(page, 'End')
    await eventually(() => chosen(page).innerText()).toContain('read_page')
    expect(await rows(page).count()).toBeLessThan(300)
    await press(page, 'c')
    await page.getByText('Page 5000. It reads the next page').first().waitFor()
    expect(await rows(page).count()).toBeLessThan(300)
    await lookFor(page, 'holds the needle')
    await eventually(() => page.getByRole('status').innerText()).toContain('of 1')
    expect(await page.evaluate('viewerStore.book.parsed')).toBeLessThan(1000)
    await press(page, 'Enter')
    await page.getByText('Page 4990 holds the needle').first().waitFor()
    await page.goBack()
    await eventually(() => ofList(page, 'list.scrollHeight - list.scrollTop')).toBeLessThan(2000)
  })

  test('VW-05 a jump shows its row, whatever the heights above it, and going back restores the place', async () => {
    const { page } = await open(await pages.write('jump', checkout))
    await press(page, 'c')
    const place = () => ofList(page, 'list.scrollTop')
    await ofList(page, 'list.scrollTo(0, 900)')
    await eventually(place).toBe(900)
    await page.evaluate("location.hash = '#seq=57&run=run_checkout'")
    await eventually(() => chosen(page).getAttribute('data-seq')).toBe('57')
    await eventually(() => chosen(page).isVisible()).toBe(true)
    expect(await place()).toBeGreaterThan(1500)
    const [row, list] = [await chosen(page).boundingBox(), await page.locator('.list').boundingBox()]
    const seen = row !== null && list !== null && row.y >= list.y && row.y < list.y + list.height
    expect(seen).toBe(true)
  })

  test.each([
    ['a cut last line', (text: string) => text.slice(0, -40), /last line/],
    [
      'a broken line',
      (text: string) => text.replace('{"kind":"tool_call_started"', '{"kind":"tool_call_sta'),
      /Line 4 /,
    ],
    [
      'an unknown kind',
      (text: string) => text.replace('"kind":"cache_bust"', '"kind":"weather_changed"'),
      /weather_changed/,
    ],
    ['a later format', (text: string) => text.replace('"version":3', '"version":9'), /format 9/],
  ])('VW-07 %s is named in a bar, and the rest is shown', async (_name, broken, message) => {
    const [first, ...others] = checkout
    const log = { ...first, text: broken(first?.text ?? '') } as PageLog
    const { page, complaints } = await open(await pages.write('broken', [log, ...others]))
    await eventually(() => page.getByRole('alert').innerText()).toMatch(message)
    await page.getByText("I'll run the failing test first.").waitFor()
    await press(page, 'c')
    await page.getByText('I look at the cart').waitFor()
    expect(complaints).toEqual([])
  })

  test('VW-08 VW-09 strings of strangers are text: scripts, styles, direction marks, 10 MB on one line', async () => {
    const words = [
      '<script>globalThis.ran = true</script><img src=x onerror="globalThis.ran = true"><style>body{display:none}</style>',
      '[click](javascript:globalThis.ran=true) ![pixel](https://example.com/pixel.png) \u202Egnp.exe',
      '# Heading',
      '</script></style>--> **strong**',
    ].join('\n\n')
    const line = 'x'.repeat(10_000_000)
    const data = Buffer.from('secret bytes '.repeat(20)).toString('base64')
    const said = (seq: unknown) => (seq === 5 ? `${words} ${line}` : words)
    const hostile = changed(checkout.slice(0, 1), 'tool_call_completed', ({ seq }) => ({
      output: JSON.stringify({ ok: true, content: said(seq), metadata: {} }),
      message: said(seq),
      parts: [
        { type: 'image', url: 'https://example.com/image.png' },
        { type: 'file', mediaType: 'application/pdf', data, name: '<b>file</b>' },
      ],
    }))
    const spoken = changed(hostile, 'model_message', ({ seq, entry }) => {
      const { parts, ...rest } = entry as { readonly parts: readonly object[] }
      return {
        entry: { ...rest, parts: [{ type: 'text', text: seq === 3 ? `${words}\n\n${line}` : words }, ...parts] },
      }
    })
    const address = await pages.write('hostile', spoken, { title: '<b>Title</b> \u202E' })
    const { page, requests, complaints } = await open(address)
    await press(page, 'c', 'J', 'j', 'd', 'd')
    await page.getByText('globalThis.ran').first().waitFor()
    expect(await page.evaluate('globalThis.ran')).toBeUndefined()
    expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([address])
    expect(complaints).toEqual([])
    expect(await page.locator('#page img, #page script, #page style').count()).toBe(0)
    const hrefs = await Promise.all((await page.locator('#page a').all()).map((link) => link.getAttribute('href')))
    expect(hrefs.filter((href) => !/^(https?:|#)/.test(href ?? ''))).toEqual([])
    expect(await page.locator('.prose strong').first().innerText()).toBe('strong')
    expect(await page.locator('h1').innerText()).toBe('<b>Title</b> ⟨U+202E⟩')
    expect(await page.locator('#page').innerText()).not.toContain(data.slice(0, 40))
    await page.getByText('<b>file</b>, application/pdf, 260 bytes').first().waitFor()
    await page
      .getByRole('button', { name: /^Show (more|all)/ })
      .first()
      .waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(1440)
    for (const row of await rows(page).all()) expect((await row.innerText()).length).toBeLessThan(30_000)
  })

  test('VW-10 a row that is chosen before the other reading is drawn is shown in it', async () => {
    const { page } = await open(await pages.write('quick', checkout))
    await page.evaluate(`for (const key of ['c', 'End']) dispatchEvent(new KeyboardEvent('keydown', { key }))`)
    await eventually(() => chosen(page).innerText()).toContain('Problem')
  })

  test('VW-10 VW-25 two readings of one run; the place is kept', async () => {
    const { page, context } = await open(await pages.write('readings', checkout))
    await press(page, 'J', 'J', 'J', 'J', 'J')
    const seq = await chosen(page).getAttribute('data-seq')
    expect(await page.getByRole('treeitem').count()).toBeGreaterThan(10)
    await press(page, 'c')
    await page.getByRole('list', { name: 'Conversation' }).waitFor()
    await eventually(() => chosen(page).getAttribute('data-seq')).toBe(seq)
    await eventually(() => chosen(page).isVisible()).toBe(true)
    await press(page, 'T')
    expect(await page.evaluate('Object.keys(localStorage)')).toEqual(['thinharness-viewer'])
    expect(await page.evaluate("localStorage.getItem('thinharness-viewer')")).toBe(
      JSON.stringify({ theme: 'light', reading: 'conversation' }),
    )
    expect(await context.cookies()).toEqual([])
    await page.reload()
    await page.getByRole('list', { name: 'Conversation' }).waitFor()
  })

  test('VW-11 the waterfall has a bar for each turn, call and child run; the wait for a person is folded, lost attempts are marked', async () => {
    const { page } = await open(await pages.write('waterfall', checkout))
    const bars = (text: string) =>
      page.getByRole('treeitem').filter({ hasText: text }).first().locator('.time i:not(.gap)')
    const box = async (text: string) => (await bars(text).last().boundingBox()) ?? { x: 0, width: 0 }
    expect(await rows(page).first().locator('.gap').count()).toBe(1)
    const [turn, call] = [await box("I'll run the failing test"), await box('npm test -- tests/checkout')]
    expect(Math.abs(turn.x + turn.width - call.x)).toBeLessThan(3)
    expect(call.width).toBeGreaterThan(turn.width)
    const gap = (await rows(page).first().locator('.gap').boundingBox()) ?? { width: 0 }
    expect(gap.width).toBeLessThan(20)
    await page.getByRole('treeitem').filter({ hasText: 'reviewer' }).last().locator('.whole').waitFor()
    expect(await bars('All 23 tests pass, and').locator('xpath=self::*[contains(@class,"lost")]').count()).toBe(1)
    await press(page, 't')
    await eventually(async () => (await box("I'll run the failing test")).width).toBeGreaterThanOrEqual(turn.width)
  })

  test('VW-12 what the model saw at a turn: new entries, all before them, tools, and where the request differs', async () => {
    const { page } = await open(await pages.write('seen', checkout))
    await press(page, 'J', 'J')
    await panel(page).getByText('2 new of 3 entries').waitFor()
    await eventually(() => panel(page).innerText()).toContain('expected 5140 to be 5710')
    await panel(page).getByText('read_file').waitFor()
    expect(await panel(page).innerText()).not.toContain('Ask before you push')
    await panel(page).getByRole('button', { name: 'Show 1 earlier entry' }).click()
    await eventually(() => panel(page).innerText()).toContain('Ask before you push')
  })

  test('VW-13 a call in full: arguments as changed lines, failure, policy, who approved it and how long that took', async () => {
    const { page } = await open(await pages.write('call', checkout))
    await page.getByRole('treeitem').filter({ hasText: 'EditMismatch' }).first().click()
    await eventually(() => panel(page).innerText()).toContain('old_string not found')
    expect(await panel(page).locator('.diff .added').count()).toBeGreaterThan(2)
    expect(await panel(page).locator('.diff .removed').first().innerText()).toContain('this.#change()')
    await page.getByRole('treeitem').filter({ hasText: 'git push' }).click()
    await eventually(() => panel(page).innerText()).toContain('approved by ada')
    const text = await panel(page).innerText()
    for (const words of [
      'ask by rule push: Pushes leave this machine.',
      '4 min 12 s',
      'run_checkout:call_12',
      '1.84 s',
    ])
      expect(text).toContain(words)
    await panel(page).getByRole('tab', { name: 'Events' }).click()
    await panel(page).getByText('tool_call_completed').first().waitFor()
  })

  test('VW-14 a child run opens in place; it can be folded again', async () => {
    const { page } = await open(await pages.write('child', checkout))
    const child = page.locator('.step.run')
    await child.click()
    expect(await child.getAttribute('aria-expanded')).toBe('false')
    expect(await child.getAttribute('aria-level')).toBe('3')
    await press(page, 'Enter')
    await page.getByText('I read the file and its callers.').waitFor()
    expect(await page.getByRole('treeitem').filter({ hasText: 'I read the file' }).getAttribute('aria-level')).toBe('4')
    await press(page, 'ArrowLeft')
    await eventually(() => page.getByText('I read the file and its callers.').count()).toBe(0)
  })

  test('VW-15 the header has totals and limits; problems are listed, the loop first, and each leads to its place', async () => {
    const { page } = await open(await pages.write('problems', checkout))
    const totals = await page.locator('.figures').innerText()
    for (const words of [
      'anthropic:claude-sonnet-5',
      '51.2 s',
      '5 min 3 s with pauses',
      '5 failed',
      '79% cached',
      '$0.129 of $1.00',
      '12 of 40',
    ])
      expect(totals.replace(/\s+/g, ' ')).toContain(words)
    await page.getByRole('button', { name: '9 problems' }).click()
    const first = page.getByRole('dialog').getByRole('listitem').first()
    expect(await first.innerText()).toContain('called 3 times with the same arguments')
    await first.getByRole('button').click()
    await eventually(() => chosen(page).innerText()).toContain('npx tsc --noEmit')
    await press(page, 'Home', 'e')
    await eventually(() => chosen(page).innerText()).toContain('npm test')
    await press(page, 'e')
    await eventually(() => chosen(page).innerText()).toContain('EditMismatch')
    await press(page, 'E')
    await eventually(() => chosen(page).innerText()).toContain('npm test')
  })

  test('VW-16 plots over the turns lead to a turn, and say why the cache was lost', async () => {
    const { page } = await open(await pages.write('plots', checkout))
    await press(page, 'p')
    const plots = page.getByRole('region', { name: 'Plots over the turns' })
    for (const title of ['Tokens', 'Cache hits', 'Cost, in sum', 'Time'])
      await plots.getByRole('heading', { name: title }).first().waitFor()
    await plots.getByText('entry_changed').waitFor()
    const { x, y } = (await plots.locator('.u-over').first().boundingBox()) ?? { x: 0, y: 0 }
    await page.mouse.move(x + 3, y + 20)
    await page.mouse.click(x + 2, y + 20)
    await eventually(() => chosen(page).innerText()).toContain("I'll run the failing test first.")
    await plots.getByRole('button', { name: /Turn 10/ }).click()
    await eventually(() => chosen(page).innerText()).toContain('All 23 tests pass, and the review')
  })

  test('VW-17 a structured answer is a tree and JSON; a quotation leads to the result that has it', async () => {
    const output = { total: 5710, source: { call_id: 'call_2', quote: 'The total of a cart, in cents.' } }
    const logs = changed(checkout, 'model_message', (event) => {
      const resolution = event['resolution'] as { readonly kind: string }
      return { resolution: resolution.kind === 'final' ? { ...resolution, mode: 'native', output } : resolution }
    })
    const { page } = await open(await pages.write('answer', logs.slice(0, 1)))
    await press(page, 'c', 'End')
    const answer = page.locator('.entry .box').filter({ hasText: 'Answer' })
    await answer.getByText('5710').waitFor()
    await answer.getByRole('button', { name: 'JSON' }).click()
    await answer.getByText('"total": 5710').waitFor()
    await answer.getByRole('button', { name: 'JSON' }).click()
    await answer.getByRole('button', { name: 'quoted from call call_2' }).click()
    await eventually(() => chosen(page).innerText()).toContain('read_file')
  })

  test('VW-18 search finds, counts, filters and unfolds', async () => {
    const { page } = await open(await pages.write('search', checkout))
    await lookFor(page, 'two vouchers of one campaign')
    const found = page.getByRole('status')
    await eventually(() => found.innerText()).toMatch(/of 2$/)
    await press(page, 'Enter')
    await eventually(() => found.innerText()).toBe('1 of 2')
    await press(page, 'Enter')
    await eventually(() => chosen(page).getAttribute('data-run')).toBe('run_checkout_reviewer')
    await eventually(() => chosen(page).isVisible()).toBe(true)
    await press(page, 'Shift+Enter')
    await eventually(() => found.innerText()).toBe('1 of 2')
    await page.getByRole('searchbox').fill('')
    await page.getByLabel('Tool', { exact: true }).selectOption('edit')
    await page.getByLabel('Failed').check()
    await eventually(() => found.innerText()).toBe('– of 1')
    await page.getByRole('button', { name: 'Next hit' }).click()
    await eventually(() => chosen(page).innerText()).toContain('EditMismatch')
    await page.getByRole('searchbox').fill('nowhere at all')
    await eventually(() => found.innerText()).toBe('No hits')
    await press(page, 'Escape')
    await eventually(() => page.getByRole('search').count()).toBe(0)
  })

  test('VW-19 an event has an address, by which the page opens there; it can be copied', async () => {
    const address = await pages.write('address', checkout)
    const { page } = await open(`${address}#seq=5&run=run_checkout_reviewer`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await eventually(() => chosen(page).getAttribute('data-run')).toBe('run_checkout_reviewer')
    expect(await chosen(page).getAttribute('data-seq')).toBe('5')
    expect(await chosen(page).innerText()).toContain('grep')
    await press(page, 'y')
    await eventually(() => page.evaluate('navigator.clipboard.readText()')).toContain('"seq":5')
    await press(page, 'Y')
    await eventually(() => page.evaluate('navigator.clipboard.readText()')).toContain(
      'src/cart/cart.ts:31: apply(voucher)',
    )
    await panel(page).getByRole('button', { name: 'Copy the address' }).click()
    await eventually(() => page.evaluate('navigator.clipboard.readText()')).toBe(
      `${address}#seq=5&run=run_checkout_reviewer`,
    )
    await press(page, 'J')
    await eventually(() => page.evaluate('location.hash')).toMatch(/^#seq=\d+&run=run_checkout/)
    await panel(page).getByRole('button', { name: 'Copy the prompt' }).click()
    await eventually(() => page.evaluate('navigator.clipboard.readText()')).toContain('## user')
  })

  test('VW-20 two runs side by side: equal turns are folded, words that differ are marked, totals stand above', async () => {
    const { page } = await open(await pages.write('compare', [...checkout, ...checkoutAgain]))
    await page.getByLabel('Compare with').selectOption('run_checkout_again')
    await page.getByText('4 of 12 turns differ').waitFor()
    const view = page.getByRole('main', { name: 'Comparison of two runs' })
    for (const words of ['5 turns: 1 to 5', '12 turns · 13 calls, 5 failed', '9 turns · 10 calls, 2 failed', 'removed'])
      expect(await view.innerText()).toContain(words)
    expect(await view.locator('del').innerText()).toContain('was there before')
    await view.getByRole('button', { name: 'Show equal turns' }).click()
    await view.getByText("I'll run the failing test first.").first().waitFor()
    await view.getByRole('button', { name: 'Turn 12' }).click()
    await eventually(() => chosen(page).innerText()).toContain('The test passes again')
  })

  test('VW-03 the log is saved as it is, with its child runs', async () => {
    const { page } = await open(await pages.write('save', checkout))
    const [download] = await Promise.all([page.waitForEvent('download'), press(page, 's')])
    expect(readFileSync(await download.path(), 'utf8')).toBe(checkout.map(({ text }) => text).join(''))
    expect(download.suggestedFilename()).toBe('run_checkout.jsonl')
  })

  test('VW-21 the keyboard alone is enough, and the help has each key', async () => {
    const { page } = await open(await pages.write('keys', checkout))
    const tree = page.getByRole('tree')
    await press(page, 'j')
    await eventually(() => chosen(page).innerText()).toContain('The checkout test fails')
    await press(page, 'J', 'j')
    const active = await tree.getAttribute('aria-activedescendant')
    expect(await page.locator(`#${active ?? ''}`).getAttribute('aria-selected')).toBe('true')
    expect(await page.locator(`#${active ?? ''}`).innerText()).toContain('Call')
    await press(page, 'k', 'Enter')
    await eventually(() => page.getByText('npm test -- tests/checkout').count()).toBe(1)
    await press(page, '?')
    const help = page.getByRole('dialog', { name: 'Keys' })
    for (const name of ['Next turn', 'Search', 'Next hit', 'Next problem', 'The other reading', 'Time:'])
      await help.getByText(name).first().waitFor()
    await press(page, 'Escape')
    await eventually(() => help.count()).toBe(0)
    await press(page, 'd')
    await eventually(() => panel(page).count()).toBe(0)
  })

  test.each(['light', 'dark'] as const)('VW-27 the page looks as its picture in the %s theme', async (colorScheme) => {
    const address = await pages.write(`picture-${colorScheme}`, checkout)
    const viewport = { width: 1280, height: 800 }
    const { page } = await open(address, { colorScheme, viewport, timezoneId: 'UTC' })
    await page.getByText('EditMismatch').first().click()
    await page.getByText('old_string not found').waitFor()
    const now = await page.screenshot({ animations: 'disabled', caret: 'hide' })
    const kept = readFileSync(`docs/pictures/viewer-${colorScheme}.png`)
    const differences = (one: Buffer, two: Buffer) =>
      page.evaluate<{ mean: number; most: number }>(
        `(${DIFFERENCE})('${one.toString('base64')}', '${two.toString('base64')}')`,
      )
    // Machines have other fonts: layout and colours are compared, not letters.
    const { mean, most } = await differences(now, kept)
    expect(mean).toBeLessThan(8)
    expect(most).toBeLessThan(140)
    const dark = readFileSync(`docs/pictures/viewer-${colorScheme === 'dark' ? 'light' : 'dark'}.png`)
    expect((await differences(now, dark)).mean).toBeGreaterThan(50)
  })

  test.each(['light', 'dark'] as const)(
    'VW-21 VW-22 axe finds nothing in the %s theme, at the width of a phone too',
    async (colorScheme) => {
      const { page } = await open(await pages.write(`axe-${colorScheme}`, [...checkout, ...checkoutAgain]), {
        colorScheme,
      })
      const clean = async (what: string) => {
        const { violations } = await page.evaluate<Findings>(`${axe}; axe.run()`)
        expect(violations.map(({ id, nodes }) => `${what}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual(
          [],
        )
      }
      await press(page, 'J', 'J', '/', 'Tab', 'Escape', 'p')
      await clean('steps')
      await press(page, 'c')
      await clean('conversation')
      for (const width of [1024, 360]) {
        await page.setViewportSize({ width, height: 740 })
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      }
      await clean('phone, details')
      expect(await rows(page).first().isVisible()).toBe(false)
      await press(page, 'd')
      await eventually(() => rows(page).first().isVisible()).toBe(true)
      await clean('phone, rows')
      await press(page, '!')
      await clean('problems')
      await press(page, 'Escape')
      // The browser says a little later that it is closed.
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await press(page, 'r')
      await page.getByRole('main', { name: 'Runs' }).waitFor()
      await clean('runs')
    },
  )

  test('a list of runs, to pick one; a thread shows its runs one after the other', async () => {
    const summary = {
      status: 'completed',
      startedAt: '2026-11-20T09:14:02.000Z',
      endedAt: null,
      model: 'm',
      prompt: 'Fix it',
      turns: 12,
      calls: 13,
      costUsd: 0.1,
    }
    const logs = [...checkout, ...checkoutAgain].map((log) => ({ ...log, summary }))
    const { page } = await open(await pages.write('runs', logs, { root: null }))
    expect(await page.evaluate('viewerStore.book.opened')).toBeUndefined()
    await page.getByRole('button', { name: 'Fix it' }).first().click()
    await page.getByText("I'll run the failing test first.").waitFor()
    const thread = await open(await pages.write('thread', logs, { root: null, threadId: 't1' }))
    await thread.page
      .getByRole('treeitem')
      .filter({ hasText: 'run_checkout_again' })
      .first()
      .waitFor({ state: 'attached' })
    expect(await thread.page.getByRole('treeitem').first().innerText()).toContain('run_checkout')
  })

  test('each log of the corpus is shown in both readings', async () => {
    const files = readdirSync('tests/corpus/v3').filter((name) => name.endsWith('.jsonl'))
    const logs = logsOf(files.map((name) => readFileSync(`tests/corpus/v3/${name}`, 'utf8')).join(''))
    const { page, complaints } = await open(await pages.write('corpus', logs, { root: null }))
    const tops = logs.filter(({ parentRunId }) => parentRunId === undefined)
    expect(tops.length).toBeGreaterThan(15)
    for (const { runId } of tops)
      for (const reading of ['steps', 'conversation']) {
        await page.evaluate(`viewerStore.showRuns(['${runId}']); viewerStore.set({ reading: '${reading}' })`)
        await page.locator(`.row[data-run="${runId}"]`).first().waitFor()
      }
    expect(complaints).toEqual([])
  })

  test('a page without a log, or with a broken one, says so', async () => {
    const path = `${folder}/template.html`
    const { page } = await open(pathToFileURL(path).href)
    expect(await page.getByRole('alert').innerText()).toContain('no log')
  })
})
