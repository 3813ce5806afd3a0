// The list of pages: docs/README.md, in the order in which a newcomer asks. The sidebar of the site, `docs/llms.txt` and the tests of
// the pages follow from it, so that a page is listed in one place.
import { existsSync, readFileSync, readdirSync } from 'node:fs'

const INDEX = 'docs/README.md'
const PAGE = /^- \[([^\]]+)\]\(([^)#]+\.md)\): (.+)$/

/** `[{ heading, pages: [{ title, path, summary }] }]`; `path` as it stands in docs/README.md, relative to `docs`. */
export function sections() {
  return readFileSync(INDEX, 'utf8')
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      heading: section.split('\n', 1)[0] ?? '',
      pages: section.split('\n').flatMap((line) => {
        const [, title, path, summary] = PAGE.exec(line) ?? []
        return title === undefined ? [] : [{ title, path, summary }]
      }),
    }))
    .filter(({ pages }) => pages.length > 0)
}

/** What is wrong with the list: a page that is missing, listed twice, or gone. */
export function problemsOfList() {
  const listed = sections().flatMap(({ pages }) => pages.map(({ path }) => path))
  const there = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md')
  return [
    ...there.filter((name) => !listed.includes(name)).map((name) => `\`docs/${name}\` is not listed`),
    ...listed.filter((path, at) => listed.indexOf(path) !== at).map((path) => `\`${path}\` is listed twice`),
    ...listed.filter((path) => !existsSync(`docs/${path}`)).map((path) => `\`${path}\` is listed and does not exist`),
  ].map((problem) => `${INDEX}: ${problem}; each page has one line \`- [Title](page.md): what it answers\`.`)
}

const ASSISTANTS = `# thinharness

> An embeddable agent loop for TypeScript (Node 20.19 and up): runs survive crashes, deploys and approvals that take days, because each step
> is written to a log before it is taken.

Notes for coding assistants. In the package the pages lie in \`node_modules/thinharness/docs\`: \`grep\` them for a name before you guess it. Every block of code on them
has been compiled, and most of them run in a test.

- An agent is \`new Harness({ model: 'anthropic:claude-sonnet-5', tools, limits, log, use })\`; \`await harness.run(prompt)\` gives \`result.text\`,
  \`result.output\`, \`result.usage\` and \`result.pending\`; \`harness.stream(prompt)\` yields events.
- A tool is \`defineTool({ name, description, parameters, handler })\`, with a zod schema (or another Standard Schema) as \`parameters\`.
- Without a \`log\`, runs are in memory and end with the process. \`fileLog(folder)\` is of \`thinharness\`; databases are of
  \`thinharness/store/sqlite\` and \`thinharness/store/postgres\`.
- A run that waits for a person ends with \`result.status === 'paused'\`: \`harness.resume(runId, [{ callId, approved: true }])\`. A run that a crash
  interrupted: \`harness.recover(runId)\`. One id for both cases: \`harness.run(prompt, { runId, ifExists: 'continue' })\`.
- A conversation of many messages is a thread of \`Sessions\` (\`thinharness/session\`), not a run that is repeated.
- Failures are \`HarnessError\` with a \`code\`; [errors](errors.md) has a row for each.
- Tests use \`ScriptedModel\` of \`thinharness/testing\`: no network and no API key.
`

/** `docs/llms.txt`: the list for coding assistants, in the form of llmstxt.org; `linkOf` gives a page's address. */
export function llmsText(linkOf = (path) => path) {
  const lists = sections().map(
    ({ heading, pages }) =>
      `## ${heading}\n\n${pages.map(({ title, path, summary }) => `- [${title}](${linkOf(path)}): ${summary}\n`).join('')}`,
  )
  return [ASSISTANTS.replaceAll(/\]\((\w+\.md)\)/g, (_, path) => `](${linkOf(path)})`), ...lists].join('\n')
}
