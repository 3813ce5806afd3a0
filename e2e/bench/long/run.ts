// `npm run bench:long`: runs of thousands of turns over the sources of packages, in a window that a strict provider enforces.
// `--turns 5000`, `--window 200000`, `--policy clearResults|summarise|observe`.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Extension, Model } from 'thinharness'
import { clearResults, observe, summarise } from 'thinharness/context'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import type { ScriptedProvider } from 'thinharness/testing'
import { WRITER } from './explorer.js'
import type { Exploration } from './explorer.js'
import { travel } from './journey.js'
import type { Journey, Row } from './journey.js'
import { PACKAGES, plantTree } from './trees.js'

type Urls = ScriptedProvider['url']

/** A policy, and the API by which its run talks to the provider. */
interface Way {
  readonly policy: (writer: Model) => Extension
  readonly api: string
  readonly model: (urls: Urls, id: string, window?: number) => Model
}

const KEY = { apiKey: 'any' }

const WAYS: Readonly<Record<string, Way>> = {
  clearResults: {
    policy: () => clearResults(),
    api: 'Messages',
    model: ({ messages }, id, contextTokens) =>
      anthropic(id, { ...KEY, baseUrl: messages, capabilities: { contextTokens } }),
  },
  summarise: {
    policy: (model) => summarise({ model }),
    api: 'Responses',
    model: ({ responses }, id, contextTokens) =>
      openai(id, { ...KEY, baseUrl: responses, capabilities: { contextTokens } }),
  },
  observe: {
    policy: (model) => observe({ model }),
    api: 'chat completions',
    model: ({ chat }, id, contextTokens) => openaiChat(id, { ...KEY, baseUrl: chat, capabilities: { contextTokens } }),
  },
}

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '5000' },
    window: { type: 'string', default: '200000' },
    policy: { type: 'string', multiple: true, default: Object.keys(WAYS) },
  },
})
const [turns, window] = [Number(values.turns), Number(values.window)]
const folder = await mkdtemp(join(tmpdir(), 'thinharness-long-'))
try {
  const tree = await plantTree(folder)
  console.log(
    `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}. ${turns} turns over ${PACKAGES.join(', ')} (${tree.files.length} files), window of ${window} tokens.`,
  )
  const provider = await startProvider({ tree, window, turns })
  const lines: string[][] = []
  for (const name of values.policy) {
    const way = WAYS[name]
    if (way === undefined) throw new TypeError(`Expected \`--policy\` to be one of ${Object.keys(WAYS).join(', ')}.`)
    console.log(`\n${name}, ${way.api}\n\n| turns | changes | CPU per turn, ms | longest request | from the cache |`)
    console.log('| ---: | ---: | ---: | ---: | ---: |')
    const writer = way.model(provider.urls, WRITER)
    const model = way.model(provider.urls, name, window)
    const journey = await travel({ tree, model, policy: way.policy(writer), runId: `run_${name}`, onRow: print })
    lines.push(lineOf(`\`${name}\`, ${way.api}`, journey))
    report(name, journey)
  }
  provider.end()
  const head = [
    'policy, API',
    'entries',
    'view changes',
    'refused',
    'longest request',
    'from the cache',
    'tokens of writers',
    'originals out of reach',
    'CPU per turn, second half',
  ]
  console.log(
    `\n${[head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')}`,
  )
} finally {
  await rm(folder, { recursive: true, force: true })
}

function print({ turns: count, changes, cpuMs, longest, cached }: Row): void {
  console.log(`| ${count} | ${changes} | ${cpuMs.toFixed(1)} | ${longest} | ${percent(cached)} |`)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function lineOf(title: string, journey: Journey): string[] {
  const { entries, changes, refused, longest, cached, writerTokens, lost, growth } = journey
  const counts = [entries, changes, refused, longest].map((count) => count.toLocaleString('en'))
  return [
    title,
    ...counts,
    percent(cached),
    writerTokens.toLocaleString('en'),
    String(lost.length),
    `${growth.toFixed(2)}×`,
  ]
}

/** The goals of a long run. */
function report(name: string, { requests, refused, longest, cached, lost, growth }: Journey): void {
  const missed = [
    ...(requests === turns + 1 ? [] : [`${requests} requests were answered instead of ${turns + 1}`]),
    ...(refused === 0 ? [] : [`${refused} requests were refused`]),
    ...(longest < window ? [] : [`the longest request has ${longest} tokens`]),
    ...(cached >= 0.9 ? [] : [`only ${percent(cached)} are read from the cache`]),
    ...(lost.length === 0 ? [] : [`out of reach: ${lost.slice(0, 5).join(', ')}`]),
    ...(growth <= 1.25 ? [] : [`the second half costs ${growth.toFixed(2)} times the first`]),
  ]
  for (const line of missed) console.log(`MISSED ${name}: ${line}`)
  if (missed.length > 0) process.exitCode = 1
}

async function startProvider(exploration: Exploration): Promise<{ readonly urls: Urls; readonly end: () => void }> {
  const program = fileURLToPath(new URL('./provider-process.js', import.meta.url))
  const child = spawn(process.execPath, [program, JSON.stringify(exploration)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const urls = await new Promise<Urls>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => reject(new Error('The provider has ended.')))
    child.stdout.once('data', (bytes) => resolve(JSON.parse(String(bytes)) as Urls))
  })
  return { urls, end: () => child.stdin.end() }
}
