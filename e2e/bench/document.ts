import { readFile, writeFile } from 'node:fs/promises'
import { format } from 'prettier'

const FILE = new URL('e2e/bench/results.md', import.meta.resolve('thinharness/package.json'))

/** A scenario with its results. */
export interface Section {
  readonly title: string
  readonly table: string
  /** Goals that are missed, and contenders that failed. */
  readonly notes: readonly string[]
}

/** Writes e2e/bench/results.md. */
export async function writeDocument(
  sections: readonly Section[],
  { machine, rounds }: { readonly machine: string; readonly rounds: number },
): Promise<void> {
  const text = [
    INTRODUCTION,
    `Measured on ${machine}. Medians of ${rounds} rounds; in brackets, the median ratio to the first row of the same round.`,
    ...sections.flatMap(({ title, table, notes }) => [`## ${title}`, table, ...notes]),
  ].join('\n\n')
  const { rest } = await written(READERS)
  await write(`${text}\n\n${rest}`)
}

const READERS = '## 100 readers of one run'

/** Writes the figures of \`npm run bench:readers\`. */
export async function writeReaders(table: string): Promise<void> {
  const { before } = await written(READERS)
  const { rest } = await written(GROWTH, SESSIONS)
  await write([before, READERS, READERS_INTRODUCTION, table, rest].join('\n\n'))
}

const GROWTH = '## Growth'

/** Writes the figures of \`npm run bench:growth\`. */
export async function writeGrowth(
  sections: readonly string[],
  { machine, rounds }: { readonly machine: string; readonly rounds: number },
): Promise<void> {
  const { before } = await written(GROWTH, SESSIONS)
  const { rest } = await written(SESSIONS)
  const measured = `Measured on ${machine}. ${rounds === 1 ? 'One round.' : `Medians of ${rounds} rounds.`}`
  await write([before, GROWTH, GROWTH_INTRODUCTION, measured, ...sections, GROWTH_EXPLANATION, rest].join('\n\n'))
}

const SESSIONS = '## Conversations'

/** Writes the figures of \`npm run bench:sessions\`, the last section. */
export async function writeSessions(table: string, threads: number): Promise<void> {
  const { before } = await written(SESSIONS)
  await write([before, SESSIONS, sessionsIntroduction(threads), table].join('\n\n'))
}

/** The page as it is: up to the first of the headings that is there, and from there on. */
async function written(...headings: readonly string[]): Promise<{ readonly before: string; readonly rest: string }> {
  const page = await readFile(FILE, 'utf8')
  const start = headings.map((heading) => page.indexOf(heading)).find((index) => index >= 0) ?? -1
  return start < 0
    ? { before: page.trimEnd(), rest: '' }
    : { before: page.slice(0, start).trimEnd(), rest: page.slice(start) }
}

async function write(text: string): Promise<void> {
  await writeFile(FILE, await format(text, { parser: 'markdown', printWidth: 120 }))
}

const READERS_INTRODUCTION = `By \`npm run bench:readers -- --write\`: a reply of 10,000 deltas at 200 a second, through the hub and the handlers to 100 bodies of
server-sent events, which are read in the same process. Medians of 3 rounds, each with and without readers in turn. Memory is that
after a collection of garbage, above that of a run without readers. Deltas that wait for a reader are joined.`

const GROWTH_INTRODUCTION = `By \`npm run bench:growth -- --write\`. CPU in user and system time of all threads of the process, a mean of the 100 turns
or messages before the place, or the median of 11 runs of 40 turns. Without HTTP, the model is in the same process and replies immediately.`

const GROWTH_EXPLANATION = `Nothing in a turn walks the conversation: a test holds the characters that a turn encodes to those of its new entries, for each API.
The first places of a curve include work of the compiler. On a busy machine a point can be off by a factor of two. What is not flat:

- **Over HTTP** each request sends the whole conversation, as the APIs want it; only what a turn adds is encoded.
- **Tools**: each run makes a table of the digests of its tools (\`configDigest\`), about 10 µs per tool and run.
- **A message** begins a run, whose list of entries is a copy of the list before it (8 bytes an entry, three times). From about 11,000 entries on,
  V8 keeps such lists in a space of its own, which takes 1 ms more per message. The figures with few messages include the compiler.
- **A waiting run** is its state, its plan and the promises of the functions that wait; the first runs also hold what all share.`

function sessionsIntroduction(threads: number): string {
  return `By \`npm run bench:sessions -- --write\`: ${threads.toLocaleString('en')} threads with the shape of discussions of issues (20 to 500 messages with a median of 50,
each of 20 to 20,000 characters with a median of 400), and messages in threads of one size. Bytes are those of files and tables, without
indexes and write-ahead logs; the bound is 1.2 times the content and 6 KB per turn. CPU in ms per message, in this process alone;
medians of 3 rounds. The bare run continues another run by reference, without a thread. The bare POST sends the same history to the
same server by \`node:http\`, from an array of messages.`
}

const INTRODUCTION = `# Results of the benchmarks

Generated by \`npm run bench -- --nodes 20,24 --write\`. Each contender does the same work against a provider on the loopback
interface: the Responses API, one tool, default options. The provider and every contender are separate processes, and the contenders
and versions of Node take turns within a round:

- **fetch**: a hand-written loop with global \`fetch\` that serializes the whole history for each request.
- **careful**: a hand-written loop without a library, optimized: kept-alive \`node:http\` connections, a request body that is only
  appended to, streams read by whole lines.
- **client**: a hand-written loop with the official \`openai\` client.
- **thinharness**: this package with its default transport and a tool with a zod schema. The loops above check the arguments by hand.

CPU is user and system time of all threads of the process. A turn is one request. "The first of a process" includes all that is loaded
and compiled for it, "after 10 s" is a server. Garbage is collected before what is measured; memory per run is the largest resident size
above that before it. The provider sends the events of a stream in writes of 8 KiB, as they come when they are fast.

Until November 2026 other figures were here, by other methods: the first run was not measured but the second (0.35 instead of 0.9
times \`fetch\`), the loops used zod too, which made their first answer dearer (1.3 instead of 1.75 times), each event of a stream was a
write, which the parser of HTTP makes dear for all (1.0 instead of 1.2 times on Node 20, and 2.3 on Node 24), and no garbage was
collected before (0.8 instead of 1.0 to 1.3 times after 10 s: V8 throws away optimized code which refers to objects that are garbage, and compiles it
again). The method is now that of an independent bench; ratios agree to a tenth.

The scenarios without HTTP have no provider: a model in the same process replies immediately, with one tool call and a result
per turn. Memory is measured at the last tool call, after a garbage collection. It contains the transcript and, with the memory
log, the events.

Tokens are counted by the tokenizer \`o200k_base\`, with chat completions: the text of a tool message, and the data alone. They are
also printed by \`npm run bench:tools\`. A test holds the results of a whole coding run (list, search, read, edits of which two
miss, shell) to 1.05 times the bare data; they take 1.02 times.

Missed goals are listed.`
