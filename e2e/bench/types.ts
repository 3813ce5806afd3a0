// `npm run bench:types`: the cost of thirty tools in one file for the compiler. It counts type instantiations, which do not
// depend on the machine: those of thirty tools with zod, less those of the same schemas and handlers without this package.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const TOOLS = 30
const MOST = 15_000
const ROOT = fileURLToPath(new URL('.', import.meta.resolve('thinharness/package.json')))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const run = promisify(execFile)

interface Cost {
  readonly instantiations: number
  readonly seconds: number
}

/** The fields of a tool; no two tools have the same. */
function schemaOf(index: number): string {
  return `z.object({
    id${index}: z.string().describe('Its id.'),
    limit: z.number().int().min(1).max(${index + 10}).default(10),
    kind: z.enum(['first${index}', 'second', 'third']),
    range: z.object({ from: z.string().optional(), to: z.string().nullable() }).optional(),
    tags: z.array(z.object({ name: z.string(), weight: z.number() })),
  })`
}

const HANDLER = `({ limit, kind, range, tags }) => \`\${kind} \${limit} \${range?.from ?? ''} \${tags.length}\``

function tool(index: number): string {
  return `export const tool${index} = defineTool({
  name: 'tool_${index}',
  description: 'Does one thing.',
  parameters: ${schemaOf(index)},
  handler: ${HANDLER},
})`
}

function bare(index: number): string {
  return `const schema${index} = ${schemaOf(index)}
export const handler${index} = (${HANDLER.replace('}) =>', `}: z.infer<typeof schema${index}>) =>`)})`
}

function program(head: string, each: (index: number) => string): string {
  return [head, ...Array.from({ length: TOOLS }, (_, index) => each(index))].join('\n')
}

/** The declarations as they are published, from the sources as they are. */
async function declare(folder: string): Promise<void> {
  const outDir = join(folder, 'node_modules/thinharness/dist')
  await tsc(['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', outDir], 'of the package itself')
  const manifest = { name: 'thinharness', type: 'module', exports: { '.': { types: './dist/index.d.ts' } } }
  await writeFile(join(folder, 'node_modules/thinharness/package.json'), JSON.stringify(manifest))
}

async function measure(file: string): Promise<Cost> {
  const options = ['--noEmit', '--strict', '--target', 'ES2022', '--module', 'NodeNext', '--skipLibCheck']
  const text = await tsc([...options, '--ignoreConfig', '--types', 'node', '--extendedDiagnostics', file], `of ${file}`)
  return { instantiations: numberIn(text, 'Instantiations'), seconds: numberIn(text, 'Check time') }
}

async function tsc(args: readonly string[], what: string): Promise<string> {
  try {
    return (await run(process.execPath, [TSC, ...args], { maxBuffer: 16 * 1024 * 1024 })).stdout
  } catch (error) {
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout).slice(0, 2000) : String(error)
    throw new Error(`The types ${what} have errors:\n${output}`, { cause: error })
  }
}

function numberIn(text: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+([\\d.]+)`, 'm').exec(text)
  if (found === null)
    throw new Error(`Expected \`${name}\` in the output of the compiler, got \`${text.slice(0, 500)}\`.`)
  return Number(found[1])
}

async function compare(folder: string): Promise<{ readonly ours: Cost; readonly theirs: Cost }> {
  await mkdir(join(folder, 'node_modules/thinharness'), { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  for (const name of ['zod', '@types'])
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  await declare(folder)
  const zod = "import { z } from 'zod'"
  await writeFile(join(folder, 'tools.ts'), program(`${zod}\nimport { defineTool } from 'thinharness'`, tool))
  await writeFile(join(folder, 'bare.ts'), program(zod, bare))
  return { ours: await measure(join(folder, 'tools.ts')), theirs: await measure(join(folder, 'bare.ts')) }
}

const folder = await mkdtemp(join(tmpdir(), 'thinharness-types-'))
try {
  const { ours, theirs } = await compare(folder)
  const added = ours.instantiations - theirs.instantiations
  console.log(`${TOOLS} tools: ${ours.instantiations} instantiations, ${ours.seconds} s to check`)
  console.log(`their schemas and handlers alone: ${theirs.instantiations}, ${theirs.seconds} s`)
  console.log(`added by this package: ${added}, goal ≤ ${MOST}`)
  if (added > MOST) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
