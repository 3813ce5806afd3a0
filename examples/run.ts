import { mkdirSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { HarnessError } from 'thinharness'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderFault, ProviderRequest, Reply } from 'thinharness/testing'

const USAGE = `npm run example -- NAME [arguments], with NAME one of ${names().join(', ')}.

Its files are in .build/example-files/NAME, or in the folder EXAMPLE_FOLDER. The model is THINHARNESS_MODEL, for example
anthropic:claude-sonnet-5; without it, the model's replies are scripted.`

/** Runs examples/NAME/main.ts in its own folder, with the model of the environment or else with scripted replies. */
async function run(): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2)
  if (!names().includes(name)) {
    console.error(USAGE)
    process.exitCode = 1
    return
  }
  const folder = resolve(process.env['EXAMPLE_FOLDER'] ?? `.build/example-files/${name}`)
  const part = (file: string): string => new URL(`${name}/${file}.js`, import.meta.url).href
  await using model = await chosenModel(part('script'))
  console.error(`Model   ${model.note}\nFiles   ${folder}\n`)
  mkdirSync(folder, { recursive: true })
  process.chdir(folder)
  process.argv.splice(2, Infinity, ...args)
  try {
    await import(part('main'))
  } catch (error) {
    // Errors that the user can fix are printed in one line. Anything else is a bug and keeps its stack.
    if (!(error instanceof HarnessError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

function names(): readonly string[] {
  const folders = readdirSync(new URL('.', import.meta.url), { withFileTypes: true })
  return folders.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Sets THINHARNESS_MODEL, the default model of a harness. */
async function chosenModel(script: string): Promise<AsyncDisposable & { readonly note: string }> {
  const named = process.env['THINHARNESS_MODEL']
  if (named !== undefined && named !== '') return { note: named, [Symbol.asyncDispose]: () => Promise.resolve() }
  const { answer } = (await import(script)) as { readonly answer: (request: ProviderRequest) => Reply | ProviderFault }
  const provider = await scriptedProvider()
  provider.always(answer)
  process.env['THINHARNESS_MODEL'] = `local:scripted@${provider.url.chat}`
  return {
    note: 'scripted replies; HTTP, adapter, tools and files are real',
    [Symbol.asyncDispose]: () => provider.close(),
  }
}

await run()
