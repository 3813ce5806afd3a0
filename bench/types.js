// `npm run bench:types`: what thirty tools in one file cost the compiler. Counted are instantiations of types, which depend
// on no machine: those of thirty tools with zod, less those of the same schemas and handlers without us.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const TOOLS = 30
const MOST = 15_000
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const run = promisify(execFile)

/** The fields of a tool, of kinds that tools have; no two tools have the same. @param {number} index */
function schemaOf(index) {
  return `z.object({
    id${index}: z.string().describe('Its id.'),
    limit: z.number().int().min(1).max(${index + 10}).default(10),
    kind: z.enum(['first${index}', 'second', 'third']),
    range: z.object({ from: z.string().optional(), to: z.string().nullable() }).optional(),
    tags: z.array(z.object({ name: z.string(), weight: z.number() })),
  })`
}

const HANDLER = `({ limit, kind, range, tags }) => \`\${kind} \${limit} \${range?.from ?? ''} \${tags.length}\``

/** @param {number} index */
function tool(index) {
  return `export const tool${index} = defineTool({
  name: 'tool_${index}',
  description: 'Does one thing.',
  parameters: ${schemaOf(index)},
  handler: ${HANDLER},
})`
}

/** @param {number} index */
function bare(index) {
  return `const schema${index} = ${schemaOf(index)}
export const handler${index} = (${HANDLER.replace('}) =>', `}: z.infer<typeof schema${index}>) =>`)})`
}

/** @param {string} head @param {(index: number) => string} each */
function program(head, each) {
  return [head, ...Array.from({ length: TOOLS }, (_, index) => each(index))].join('\n')
}

/** The declarations as they are published, from the sources as they are. @param {string} folder */
async function declare(folder) {
  const outDir = join(folder, 'node_modules/thinharness/dist')
  await tsc(['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', outDir], 'of the package itself')
  const manifest = { name: 'thinharness', type: 'module', exports: { '.': { types: './dist/index.d.ts' } } }
  await writeFile(join(folder, 'node_modules/thinharness/package.json'), JSON.stringify(manifest))
}

/** @param {string} file @returns {Promise<{ instantiations: number, seconds: number }>} */
async function measure(file) {
  const options = ['--noEmit', '--strict', '--target', 'ES2022', '--module', 'NodeNext', '--skipLibCheck']
  const text = await tsc([...options, '--ignoreConfig', '--types', 'node', '--extendedDiagnostics', file], `of ${file}`)
  return { instantiations: numberIn(text, 'Instantiations'), seconds: numberIn(text, 'Check time') }
}

/** @param {readonly string[]} args @param {string} what */
async function tsc(args, what) {
  try {
    return (await run(process.execPath, [TSC, ...args], { maxBuffer: 16 * 1024 * 1024 })).stdout
  } catch (error) {
    const told = error instanceof Error && 'stdout' in error ? String(error.stdout).slice(0, 2000) : String(error)
    throw new Error(`The types ${what} have errors:\n${told}`, { cause: error })
  }
}

/** @param {string} text @param {string} name */
function numberIn(text, name) {
  const found = new RegExp(`^${name}:\\s+([\\d.]+)`, 'm').exec(text)
  if (found === null) throw new Error(`Expected \`${name}\` in what the compiler says, got \`${text.slice(0, 500)}\`.`)
  return Number(found[1])
}

/** @param {string} folder */
async function compare(folder) {
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
  console.log(`of our making: ${added}, goal ≤ ${MOST}`)
  if (added > MOST) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
