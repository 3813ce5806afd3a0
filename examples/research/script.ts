import type { JsonObject } from 'thinharness'
import type { ProviderRequest, Reply } from 'thinharness/testing'

const QUESTION = 'How is oolong stored best?'

/** The scripted replies for use without a model: of the researcher, for each prompt of parallel_llm, and of the checkers. */
export function answer(request: ProviderRequest): Reply {
  if (request.tools.includes('search_library')) return researcher(request)
  return request.tools.includes('archive_find') ? checker(request) : reader(request)
}

function researcher({ turn, heard, messages }: ProviderRequest): Reply {
  const outputs = heard.kind === 'tool_outputs' ? heard.outputs.map(({ content }) => content) : []
  switch (turn) {
    case 0:
      return call('search_library', { queries: ['oolong storage', 'tins and seals'], per_query: 3 })
    case 1:
      return call('jsonl_search', { path: 'research/results.jsonl', fields: { id: 0, url: 0 } })
    case 2:
      return call('fetch_pages', { pages: pagesIn(outputs[0] ?? '') })
    case 3:
      return call('build_prompts', { question: QUESTION })
    case 4:
      return call('parallel_llm', {
        source: { kind: 'file', path: 'research/prompts.json' },
        output_file: 'research/answers.json',
      })
    case 5:
      return call('read', { path: 'research/answers.json' })
    case 6:
      return { calls: claimsIn(outputs[0] ?? '').map(checking) }
    case 7:
      return call('write', { path: 'report.md', content: reportOf(outputs) })
    case 8:
      // The report of an earlier run is replaced: it has to be read first.
      if (outputs[0]?.includes('has not been read') === true) return call('read', { path: 'report.md' })
      return DONE
    case 9: {
      const results = messages.filter((message) => message.role === 'tool').map(({ content }) => String(content))
      return call('write', { path: 'report.md', content: reportOf(results.slice(6, -2)) })
    }
    default:
      return DONE
  }
}

const DONE: Reply = { text: 'The report is in report.md.' }

function reader({ messages }: ProviderRequest): Reply {
  const asked = JSON.stringify(messages)
  const [, id = ''] = /\\"id\\":\\+"(r\d+)/.exec(asked) ?? /"id\W+(r\d+)/.exec(asked) ?? []
  const claim = /(Oolong keeps[^.]*|A lid with a rubber seal[^.]*)\./.exec(asked)?.[1] ?? null
  return { calls: [{ name: 'final_result', arguments: { id, claim } }] }
}

function checker({ turn, heard, messages }: ProviderRequest): Reply {
  const claim = /Check the claim: ([^"\\]*)/.exec(JSON.stringify(messages))?.[1] ?? ''
  if (turn === 0) {
    const words = ['opaque', 'seal'].filter((word) => claim.includes(word))
    return call('archive_find', { words: [claim.includes('Oolong') ? 'oolong' : 'lid', ...words] })
  }
  const found = heard.kind === 'tool_outputs' ? (heard.outputs[0]?.content ?? '') : ''
  const source = /"source\W+([^"\\]+)/.exec(found)?.[1] ?? null
  return { calls: [{ name: 'final_result', arguments: { claim, source } }] }
}

function call(name: string, args: JsonObject): Reply {
  return { calls: [{ name, arguments: args }] }
}

/** The pages, without duplicates. */
function pagesIn(rows: string): { id: string; url: string }[] {
  const all = [...rows.matchAll(/"id": ?"(r\d+)".*?"url": ?"([^"]+)"/g)].map(([, id = '', url = '']) => ({ id, url }))
  return all.filter(({ url }, index) => all.findIndex((page) => page.url === url) === index)
}

function claimsIn(answers: string): readonly string[] {
  return [...answers.matchAll(/"claim": ?"([^"]+)"/g)].map(([, claim = '']) => claim)
}

function checking(claim: string): NonNullable<Reply['calls']>[number] {
  return { name: 'subagent', arguments: { agent: 'checker', task: `Check the claim: ${claim}` } }
}

/** Of what the checkers have found. */
function reportOf(checked: readonly string[]): string {
  const lines = checked.map((text) => {
    const { claim, source } = JSON.parse(text) as { readonly claim: string; readonly source: string | null }
    return `- ${claim}. ${source === null ? 'Not in the archive.' : `Confirmed: ${source}.`}`
  })
  return `# ${QUESTION}\n\n${lines.join('\n')}\n`
}
