// Records the command and the quickstart in a terminal of 80 × 24 (tmux), and writes each recording to docs/pictures as an animated
// SVG: the real programs, with the scripted replies that they have without a key.
//   npm run pictures:terminal              all of them
//   npm run pictures:terminal -- run chat  some
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COLUMNS, ROWS, Terminal } from './terminal-recorder.js'
import { animatedTerminal } from './terminal-svg.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const MOST_BYTES = 60_000
const SCENES = {
  init: {
    async play(terminal) {
      await terminal.command('npx thinharness init my-agent --example starter')
      await terminal.command('cd my-agent && ls')
      await terminal.command('head -24 thinharness.config.js', 2500)
      await terminal.command('npx thinharness run "Where is order 1042?"', 2500)
    },
  },
  run: {
    setup: 'npx thinharness init my-agent --example starter && cd my-agent',
    async play(terminal) {
      await terminal.command('npx thinharness run "Where is order 1042?"', 1500)
      await terminal.type('npx thinharness run "Refund order 1043."')
      terminal.press('Enter')
      await terminal.until(/y allow/)
      await terminal.hold(2500)
      await terminal.allow()
      await terminal.prompt(1500)
      await terminal.command('npx thinharness list', 2500)
    },
  },
  chat: {
    setup: 'npx thinharness init my-agent --example starter && cd my-agent',
    async play(terminal) {
      await terminal.type('npx thinharness chat')
      terminal.press('Enter')
      await terminal.until(/›/)
      await terminal.hold(800)
      await terminal.type('Where is order 1043?')
      terminal.press('Enter')
      await terminal.until(/delivered twice/)
      await terminal.hold(1500)
      await terminal.type('Refund it, please: order 1043.')
      terminal.press('Enter')
      await terminal.until(/y allow/)
      await terminal.hold(2000)
      await terminal.allow()
      await terminal.until(/was paid/)
      await terminal.hold(2500)
    },
  },
  view: {
    needs: 'view',
    setup: 'npx thinharness init my-agent --example starter && cd my-agent',
    async play(terminal) {
      await terminal.command('npx thinharness run "Where is order 1042?"', 1200)
      await terminal.command('npx thinharness view last --out order.html', 2500)
      await terminal.command('ls -sh order.html', 2500)
    },
  },
  quickstart: {
    setup: 'cd thinharness && rm -f examples/quickstart/workspace/report.md',
    holds: [
      [/The process was killed/, 3000],
      [/Another process recovers/, 1500],
    ],
    async play(terminal) {
      await terminal.command('npm run quickstart', 4000)
    },
  },
}

const chosen = process.argv.slice(2)
for (const name of chosen.length > 0 ? chosen : Object.keys(SCENES)) {
  const scene = SCENES[name]
  if (scene === undefined) throw new Error(`Expected some of ${Object.keys(SCENES).join(', ')}, got ${name}.`)
  if (scene.needs !== undefined && !help().includes(`  ${scene.needs} `)) {
    console.log(`terminal-${name}.svg: the command has no \`${scene.needs}\`, so there is nothing to record.`)
    continue
  }
  const frames = await record(scene)
  const svg = animatedTerminal(frames, { columns: COLUMNS, rows: ROWS })
  if (svg.length > MOST_BYTES)
    throw new Error(`terminal-${name}.svg has ${svg.length} bytes; the most is ${MOST_BYTES}.`)
  if (svg.includes(tmpdir()) || svg.includes(root)) throw new Error(`terminal-${name}.svg has a path of this machine.`)
  writeFileSync(join(root, `docs/pictures/terminal-${name}.svg`), svg)
  console.log(`docs/pictures/terminal-${name}.svg: ${svg.length} bytes, ${frames.length} frames`)
}

function help() {
  return execFileSync(process.execPath, [join(root, 'dist/command/main.js'), '--help'], { encoding: 'utf8' })
}

/** The frames of a scene: the lines of the screen, and how long they are shown, in ms. */
async function record({ setup, holds = [], play }) {
  const home = homeFolder()
  const terminal = new Terminal(home, holds)
  try {
    await terminal.prompt()
    if (setup !== undefined) {
      terminal.send(` ${setup} >/dev/null 2>&1; clear`)
      terminal.press('Enter')
      await terminal.until(/^~\/\S+ \$ *$/m)
    }
    terminal.begin()
    await play(terminal)
    return terminal.end()
  } finally {
    await terminal.close()
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 300 })
  }
}

/** A home with nothing but the package: \`npx\` and \`npm\` do here what they do after an installation. */
function homeFolder() {
  const home = mkdtempSync(join(tmpdir(), 'th-'))
  mkdirSync(join(home, 'node_modules'))
  symlinkSync(root, join(home, 'node_modules/thinharness'))
  symlinkSync(join(root, 'node_modules/zod'), join(home, 'node_modules/zod'))
  symlinkSync(root, join(home, 'thinharness'))
  mkdirSync(join(home, '.bin'))
  program('npx', `shift; exec node '${join(root, 'dist/command/main.js')}' "$@"`)
  program('npm', `exec node '${join(root, '.build/examples/quickstart.js')}'`)
  return home

  function program(name, line) {
    writeFileSync(join(home, '.bin', name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(home, '.bin', name), 0o755)
  }
}
