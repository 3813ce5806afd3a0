import type { ProviderRequest, Reply } from 'thinharness/testing'

/** What is said where no model is named: by the client's model, and by that of the served harness. */
export function answer(request: ProviderRequest): Reply {
  return request.tools.includes('warehouse_run') ? client(request) : warehouse(request)
}

function client({ turn, heard }: ProviderRequest): Reply {
  const said = heard.kind === 'tool_outputs' ? (heard.outputs[0]?.content ?? '') : ''
  if (turn === 0) return { calls: [{ name: 'warehouse_stock', arguments: { tea: 'Assam' } }] }
  if (turn === 1) return { calls: [{ name: 'warehouse_run', arguments: { prompt: `When does Assam come? ${said}` } }] }
  return { text: `The warehouse says: ${said}` }
}

function warehouse({ turn }: ProviderRequest): Reply {
  if (turn === 0) return { calls: [{ name: 'stock', arguments: { tea: 'assam' } }] }
  return { text: 'There is none, and more comes on Tuesday.' }
}
