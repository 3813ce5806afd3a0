import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { ownVersion } from '#util/platform/own-package.js'
import { CommandError, EXIT } from './exit.js'
import type { Terminal } from './terminal/terminal.js'

/** `init [FOLDER]`: a small agent that works without a key. Nothing that is there is overwritten. */
export function init(folder: string, terminal: Terminal): Promise<number> {
  const place = resolve(folder)
  if (existsSync(place) && readdirSync(place).length > 0)
    throw new CommandError(`The folder \`${folder}\` is not empty: name a new one.`)
  const home = dirname(createRequire(import.meta.url).resolve('thinharness/package.json'))
  cpSync(join(home, 'examples', 'starter'), place, { recursive: true })
  const manifest = {
    name: basename(place)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-'),
    private: true,
    type: 'module',
    scripts: { start: 'thinharness run "Where is order 1042?"', chat: 'thinharness chat' },
    dependencies: { thinharness: `^${ownVersion()}`, zod: '^4.0.0' },
  }
  writeFileSync(join(place, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  writeFileSync(join(place, '.gitignore'), 'node_modules/\n.thinharness/\n')
  terminal.say(`Made ${folder}. Next:`)
  terminal.out(`cd ${folder}\nnpm install\nnpx thinharness run "Where is order 1042?"\n`)
  return Promise.resolve(EXIT.done)
}
