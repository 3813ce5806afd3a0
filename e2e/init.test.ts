import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { onTerminal, project, script, shell } from '../tests/command/shell.js'

interface Example {
  readonly shows: string
  readonly dependencies?: Readonly<Record<string, string>>
}

const EXAMPLES = JSON.parse(readFileSync('examples/examples.json', 'utf8')) as Readonly<Record<string, Example>>
const names = Object.keys(EXAMPLES)

/** An example as `init` makes it, in an empty folder of its own. */
async function made(name: string): Promise<string> {
  const folder = project({ config: null })
  const { code, stderr } = await shell(['init', name, '--example', name], { folder })
  expect({ code, stderr }).toEqual({ code: 0, stderr: `Made ${name}. Next:\n` })
  return join(folder, name)
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path))
}

/** Its packages, as `npm install` has them; esbuild, not `tsx`, makes JavaScript of its files. */
async function installed(name: string): Promise<string> {
  const place = await made(name)
  for (const each of Object.keys(EXAMPLES[name]?.dependencies ?? {})) {
    const link = join(place, 'node_modules', each)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(resolve('node_modules', each), link, 'dir')
  }
  const entryPoints = filesIn(place).filter((path) => path.endsWith('.ts') && !/\/(page|node_modules)\//.test(path))
  await build({ entryPoints, outdir: place, outbase: place, format: 'esm', target: 'node20', logLevel: 'error' })
  for (const path of entryPoints) rmSync(path)
  return place
}

test.each(['chat', 'support-desk'])('the copy of `%s` starts without a key, and serves its page', async (name) => {
  const place = await installed(name)
  const env = { PATH: process.env['PATH'] ?? '', HOME: place, PORT: '0' }
  const server = spawn(process.execPath, ['start.js'], { cwd: place, env })
  const ended = once(server, 'close')
  for await (const line of createInterface(server.stdout)) {
    const [address] = /http:\S+/.exec(line) ?? []
    if (address === undefined) continue
    const page = await (await fetch(address)).text()
    const [, source = ''] = /<script[^>]* src="([^"]+)"/.exec(page) ?? []
    expect((await fetch(new URL(source, address))).status).toBe(200)
    break
  }
  server.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  expect(existsSync(join(place, 'data'))).toBe(true)
})

test.each(names)('the example `%s` is complete: a page, and every package that it imports', async (name) => {
  const place = await made(name)
  expect(existsSync(join(place, 'README.md'))).toBe(true)
  const { dependencies } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Required<Example>
  const entryPoints = filesIn(place).filter((path) => /\.[jt]sx?$/.test(path))
  const { metafile } = await build({
    ...{ entryPoints, outdir: 'out', bundle: true, packages: 'external', platform: 'node', format: 'esm' },
    ...{ write: false, metafile: true, logLevel: 'silent' },
  })
  const imported = Object.values(metafile.inputs).flatMap(({ imports }) =>
    imports.filter(({ external, path }) => external === true && !isBuiltin(path)).map(({ path }) => packageOf(path)),
  )
  expect(imported).toContain('thinharness')
  expect([...new Set(imported)].filter((path) => !(path in dependencies))).toEqual([])
  const texts = filesIn(place).filter((path) => /\.(ts|js|md)$/.test(path))
  expect(texts.filter((path) => readFileSync(path, 'utf8').includes('../../'))).toEqual([])
})

function packageOf(specifier: string): string {
  return /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier
}

test('the packages of the examples are those that the tests run them with', () => {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Readonly<
    Record<'devDependencies', Readonly<Record<string, string>>>
  >
  const named: Readonly<Record<string, string>> = Object.assign(
    {},
    ...Object.values(EXAMPLES).map(({ dependencies }) => dependencies),
  ) as never
  for (const [name, range] of Object.entries(named)) expect([name, range]).toEqual([name, devDependencies[name]])
})

test('the help names every example, and so does the page of the examples', async () => {
  const { stdout } = await shell(['init', '--help'], { folder: project({ config: null }) })
  const page = readFileSync('examples/README.md', 'utf8')
  expect(names.filter((name) => !stdout.includes(name) || !page.includes(`(${name}/README.md)`))).toEqual([])
})

test('an unknown name is refused with a list of the examples, and nothing is made', async () => {
  const folder = project({ config: null })
  const { code, stderr } = await shell(['init', 'desk', '--example', 'suport-desk'], { folder })
  expect(code).toBe(2)
  expect(stderr).toContain('There is no example `suport-desk`. There are:\n')
  expect(names.filter((name) => !stderr.includes(`  ${name} `))).toEqual([])
  expect(existsSync(join(folder, 'desk'))).toBe(false)
})

test('on a terminal it asks for an example; stopping makes nothing', async () => {
  const folder = project({ config: null })
  const chosen = onTerminal(['init'], { folder })
  await chosen.press('Which example?', '\u001B[B\r')
  expect((await chosen.ended).stdout).toContain('cd chat')
  expect(existsSync(join(folder, 'chat', 'main.ts'))).toBe(true)
  const stopped = onTerminal(['init'], { folder })
  await stopped.press('Which example?', '\u001B')
  expect((await stopped.ended).code).toBe(130)
  expect(existsSync(join(folder, 'my-agent'))).toBe(false)
})

test('a folder that has only a repository counts as empty', async () => {
  const folder = project({ config: null })
  const { stdout } = await script('mkdir -p new/.git && cd new && thinharness init .', { folder })
  expect(stdout).toBe('npm install\nnpm start\n')
  expect(existsSync(join(folder, 'new', 'thinharness.config.js'))).toBe(true)
})
