import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { sections } from '../scripts/pages.js'
import { executablePath } from '../tests/support/browser.js'

const SITE = '.build/site-of-test'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}

vi.setConfig({ testTimeout: 60_000, hookTimeout: 240_000 })

let server: Server
let browser: Browser
let address = ''
let built: { readonly status: number | null; readonly output: string }

const read = (path: string): string => readFileSync(join(SITE, path), 'utf8')

describe.skipIf(executablePath === undefined)('the site in Chromium', () => {
  // Without the API reference, which takes longer than all pages.
  beforeAll(async () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/site.js'], {
      encoding: 'utf8',
      env: { ...process.env, SITE_FOLDER: SITE, SITE_API: 'no', NODE_ENV: 'production' },
    })
    built = { status, output: stdout + stderr }
    server = createServer(({ url = '/' }, response) => {
      const { pathname } = new URL(url, 'http://localhost')
      const path = join(SITE, decodeURI(pathname.endsWith('/') ? `${pathname}index.html` : pathname))
      const isFile = existsSync(path) && statSync(path).isFile()
      response.writeHead(isFile ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'text/plain' })
      response.end(isFile ? readFileSync(path) : '')
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  })

  afterAll(async () => {
    await browser.close()
    server.close()
    for (const end of ['', '-source', '-cache']) rmSync(SITE + end, { recursive: true, force: true })
  })

  /** A page, and what goes wrong on it. */
  async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page: Page = await context.newPage()
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text())
    })
    page.on('request', (request) => {
      if (!/^data:/.test(request.url()) && !request.url().startsWith(address)) problems.push(request.url())
    })
    await page.goto(address + path, { waitUntil: 'networkidle' })
    return { page, problems }
  }

  const colourOf = (page: Page) => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')

  test('it builds, and every link of it leads somewhere', () => {
    expect(built.output).toContain(`The site is in ${SITE}.`)
    expect(built.status).toBe(0)
  })

  test('the landing page has its program and its table in both themes, without an error and a request to elsewhere', async () => {
    const colours: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, problems } = await open('/', { colorScheme })
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('Agents that survive')
      expect(await page.locator('.program pre').first().innerText()).toContain("log: fileLog('runs')")
      expect(await page.getByRole('row').count()).toBeGreaterThan(6)
      expect(await page.getByRole('link', { name: 'Get started' }).first().getAttribute('href')).toMatch(
        /getting-started/,
      )
      colours.push(await colourOf(page))
      expect(problems).toEqual([])
    }
    expect(new Set(colours).size).toBe(2)
  })

  test('on a telephone nothing is wider than the screen', async () => {
    for (const path of ['/', '/getting-started.html', '/approvals.html']) {
      const { page } = await open(path, { viewport: { width: 360, height: 740 } })
      expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0])
    }
  })

  test('the search finds a page by a word of it', async () => {
    const { page, problems } = await open('/getting-started.html')
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').fill('requiresApproval')
    await page.locator('.results a', { hasText: 'Approvals' }).first().click()
    await page.waitForURL(/approvals/)
    expect(problems).toEqual([])
  })

  test('the sidebar is the list of docs/README.md', async () => {
    const { page } = await open('/getting-started.html', { viewport: { width: 1400, height: 900 } })
    const headings = await page.locator('.VPSidebarItem.level-0 > .item').allInnerTexts()
    expect(headings.map((text) => text.trim())).toEqual(sections().map(({ heading }) => heading))
  })

  test('assistants get the list, every page as Markdown, and all pages in one file', () => {
    const list = read('llms.txt')
    for (const { pages } of sections()) for (const { summary } of pages) expect(list).toContain(`: ${summary}\n`)
    expect(list).toContain('- [Approvals (human in the loop)](/approvals.md): ')
    expect(read('approvals.md')).toContain('requiresApproval')
    expect(read('llms-full.txt')).toContain('requiresApproval')
  })
})
