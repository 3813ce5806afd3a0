// Takes the pictures in docs/pictures, light and dark, in Chromium: the chat page with its scripted model, and the run viewer with
// the reference log of its tests.
//   npm run pictures
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { viewer } from '../dist/viewer/index.js'

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const MOST_BYTES = 200_000
const root = fileURLToPath(new URL('..', import.meta.url))
const pictures = join(root, 'docs/pictures')

const executablePath = BROWSERS.find((path) => existsSync(path))
if (executablePath === undefined) throw new Error(`Expected Chromium at one of ${BROWSERS.join(', ')}.`)
mkdirSync(pictures, { recursive: true })
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  for (const colorScheme of ['light', 'dark']) {
    await picture(colorScheme)
    await pictureOfViewer(colorScheme)
  }
} finally {
  await browser.close()
}

/** One conversation, so that both pictures show the same. */
async function picture(colorScheme) {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-pictures-'))
  const server = spawn(process.execPath, [join(root, '.build/examples/run.js'), 'chat'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: join(folder, 'chat'), PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const context = await browser.newContext({ colorScheme, viewport: { width: 760, height: 1000 } })
  try {
    const page = await context.newPage()
    await page.goto(await addressOf(server))
    await say(page, 'Where is my order?')
    await page.getByText('The result: ').waitFor()
    await page.getByRole('button', { name: 'Send' }).waitFor()
    await say(page, 'A refund, please.')
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await shoot(page, `chat-${colorScheme}.png`)
  } finally {
    await context.close()
    server.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The viewer as its test opens it: a call that failed is chosen. */
async function pictureOfViewer(colorScheme) {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-pictures-'))
  const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 }, timezoneId: 'UTC' })
  try {
    const path = join(folder, 'viewer.html')
    const log = readFileSync(join(root, 'e2e/viewer/checkout.jsonl'), 'utf8')
    writeFileSync(path, await viewer(log, { title: 'Fix the checkout test' }))
    const page = await context.newPage()
    await page.goto(pathToFileURL(path).href)
    await page.getByText('EditMismatch').first().click()
    await page.getByText('old_string not found').waitFor()
    await shoot(page, `viewer-${colorScheme}.png`)
  } finally {
    await context.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function shoot(page, name) {
  const path = join(pictures, name)
  await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
  const { size } = statSync(path)
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes; the most is ${MOST_BYTES}.`)
  console.log(`${path}: ${size} bytes`)
}

async function say(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

function addressOf(server) {
  return new Promise((resolve, reject) => {
    server.once('close', () => reject(new Error('The server of the chat page ended.')))
    createInterface(server.stdout).on('line', (line) => {
      const address = /^Open (http:\S+)$/.exec(line)?.[1]
      if (address !== undefined) resolve(address)
    })
  })
}
