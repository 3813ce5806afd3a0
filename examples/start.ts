// `npm start`: runs main.ts in the folder `data`, with the model that THINHARNESS_MODEL names. Without one, script.ts answers in its
// place: HTTP, adapter, tools and files are real. When you have a key, delete both, and start main.ts itself.
import { mkdirSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HarnessError } from 'thinharness'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderFault, ProviderRequest, Reply } from 'thinharness/testing'

interface Script {
  readonly answer: (request: ProviderRequest) => Reply | ProviderFault
}

/** Runs the example of a folder, with its files in another one. */
export async function start(home: URL, place: string): Promise<void> {
  await using model = await chosenModel(new URL('script.js', home).href)
  console.error(`Model   ${model.note}\nFiles   ${resolve(place)}\n`)
  mkdirSync(place, { recursive: true })
  process.chdir(place)
  try {
    await import(new URL('main.js', home).href)
  } catch (error) {
    // Errors that the user can fix are printed in one line. Anything else is a bug and keeps its stack.
    if (!(error instanceof HarnessError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

/** Sets THINHARNESS_MODEL, the default model of a harness. */
async function chosenModel(script: string): Promise<AsyncDisposable & { readonly note: string }> {
  const named = process.env['THINHARNESS_MODEL']
  if (named !== undefined && named !== '') return { note: named, [Symbol.asyncDispose]: () => Promise.resolve() }
  const { answer } = (await import(script)) as Script
  const provider = await scriptedProvider()
  provider.always(answer)
  process.env['THINHARNESS_MODEL'] = `local:scripted@${provider.url.chat}`
  return {
    note: 'scripted replies; HTTP, adapter, tools and files are real',
    [Symbol.asyncDispose]: () => provider.close(),
  }
}

const program = process.argv[1]
if (program !== undefined && import.meta.url === pathToFileURL(realpathSync(program)).href)
  await start(new URL('./', import.meta.url), 'data')
