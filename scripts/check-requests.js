// Checks requests against the schemas that the providers publish: `node scripts/check-requests.js requests.jsonl …`, with
// a line `{ "api", "body", "name"?, "version"? }` for each request. The APIs are `openai-responses`, `openai-chat` and
// `anthropic-messages`; `version` is an `anthropic-version`. The schemas lie beside the project; where they do not, it
// says so, and nothing is checked. The exit status is 1 when a request is not valid.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const VALIDATOR = new URL('../../shared/fixtures/validate-request.mjs', import.meta.url)

/** Fields that servers of chat completions other than OpenAI's take beside those of the schema. */
const OF_VENDORS = ['cache_control', 'reasoning', 'provider', 'transforms', 'models', 'usage', 'plugins', 'thinking']

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const result = await checkRequests(process.argv.slice(2))
  for (const { place, errors } of result?.refused ?? []) console.error(`${place}\n  ${errors.join('\n  ')}`)
  const { checked, refused } = result ?? { checked: 0, refused: [] }
  console.log(
    result === undefined
      ? 'There are no schemas beside the project: nothing was checked.'
      : `${checked} requests, ${refused.length} of them not valid.`,
  )
  process.exitCode = refused.length === 0 ? 0 : 1
}

/** How many requests there are in `files`, and which of them are not valid and why; undefined without schemas. */
export async function checkRequests(files) {
  if (!existsSync(VALIDATOR)) return undefined
  const { validateRequest } = await import(VALIDATOR.href)
  let checked = 0
  const refused = []
  for (const file of files) {
    for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      if (line.trim() === '') continue
      checked += 1
      const { place, errors } = checkLine(line, `${file}:${index + 1}`, validateRequest)
      if (errors.length > 0) refused.push({ place, errors })
    }
  }
  return { checked, refused }
}

function checkLine(line, place, validateRequest) {
  let request
  try {
    request = JSON.parse(line)
  } catch {
    return { place, errors: ['This line is no JSON.'] }
  }
  const { api, body, name, version = '2023-06-01' } = request
  const allow = api === 'openai-chat' ? OF_VENDORS : []
  const { ok, errors = [] } = validateRequest(api, body, { version, allow })
  return { place: name === undefined ? place : `${place} (${name})`, errors: ok ? [] : errors }
}
