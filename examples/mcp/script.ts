import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model: of the client, and of the served harness. */
export function answer(request: ProviderRequest): Reply {
  return request.tools.includes('warehouse_run') ? client(request) : warehouse(request)
}

function client({ turn, heard }: ProviderRequest): Reply {
  const result = heard.kind === 'tool_outputs' ? (heard.outputs[0]?.content ?? '') : ''
  if (turn === 0) return { calls: [{ name: 'warehouse_stock', arguments: { tea: 'Assam' } }] }
  if (turn === 1)
    return { calls: [{ name: 'warehouse_run', arguments: { prompt: `When does Assam arrive? ${result}` } }] }
  return { text: `The warehouse says: ${result}` }
}

function warehouse({ turn }: ProviderRequest): Reply {
  if (turn === 0) return { calls: [{ name: 'stock', arguments: { tea: 'assam' } }] }
  return { text: 'There is none. More arrives on Tuesday.' }
}
