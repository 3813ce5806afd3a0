import { writeFile } from 'node:fs/promises'
import { format } from 'prettier'

const FILE = new URL('../docs/performance.md', import.meta.url)

/** @typedef {{ title: string, table: string, missed: readonly string[] }} Section */

/**
 * Writes docs/performance.md.
 * @param {readonly Section[]} sections @param {{ machine: string, rounds: number }} about
 */
export async function writeDocument(sections, { machine, rounds }) {
  const text = [
    INTRODUCTION,
    `Measured on ${machine}; medians of ${rounds} rounds, in brackets the median ratio to the first line within a round.`,
    ...sections.flatMap(({ title, table, missed }) => [
      `## ${title}`,
      table,
      ...missed.map((line) => `Missed: ${line}.`),
    ]),
  ].join('\n\n')
  await writeFile(FILE, await format(text, { parser: 'markdown', printWidth: 120 }))
}

const INTRODUCTION = `# What it costs

Written by \`npm run bench -- --write\`. The same work is done against a provider on loopback, which is a process of its
own, by contenders that are a process each and take turns within a round:

- **fetch**: the loop that one writes by hand with global \`fetch\`, the whole history as JSON in each request.
- **careful**: a loop without a library that knows what things cost: kept connections of \`node:http\`, a body that grows by
  appending, streams read by whole lines.
- **client**: the official \`openai\` client by hand.
- **thinharness**: this package over its default transport, with one tool of a JSON Schema.

All speak chat completions, offer the same tool, check its arguments and the answer. CPU is user and system time of all
threads of the contender. A turn is one request. The provider sends each event of a stream as a chunk of its own, of about
250 bytes, many of them at once.

The scenarios of the loop alone have no provider: a model in the same process answers at once, with one tool call and a
result each turn. What a run holds is weighed at its last tool call, after a garbage collection: the transcript, and with
the log in memory its events too.

Goals that are missed are named. They were set on another machine, by the ratios that hold there.`
