import { existsSync, readdirSync } from 'node:fs'
import { start } from './start.js'

const USAGE = `npm run example -- NAME [arguments], with NAME one of ${names().join(', ')}.

Its files are in .build/example-files/NAME, or in the folder EXAMPLE_FOLDER. The model is THINHARNESS_MODEL, for example
anthropic:claude-sonnet-5; without it, the model's replies are scripted.`

/** Runs examples/NAME/main.ts in its own folder. */
async function run(): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2)
  if (!names().includes(name)) {
    console.error(USAGE)
    process.exitCode = 1
    return
  }
  process.argv.splice(2, Infinity, ...args)
  const place = process.env['EXAMPLE_FOLDER'] ?? `.build/example-files/${name}`
  await start(new URL(`${name}/`, import.meta.url), place)
}

function names(): readonly string[] {
  return readdirSync(new URL('.', import.meta.url)).filter((name) =>
    existsSync(new URL(`${name}/main.js`, import.meta.url)),
  )
}

await run()
