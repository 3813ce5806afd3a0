import type { OutputText, ResponseItem, ResponsePayload } from './event.js'

/** An item of the output, and its place in the stream. */
interface Placed {
  readonly index: number
  item: ResponseItem
}

/** An item that is arriving. */
interface Arriving {
  readonly kind: 'text' | 'reasoning' | 'call'
  readonly placed: Placed
  text: string
}

/**
 * The items of one response: sent as they arrive, and together. An item that is withdrawn keeps its place in the stream, and is not
 * among the items of the response.
 */
export class Output {
  readonly #emit: (event: ResponsePayload) => void
  readonly #arriving = new Map<string, Arriving>()
  #items: Placed[] = []
  #count = 0

  constructor(emit: (event: ResponsePayload) => void) {
    this.#emit = emit
  }

  get items(): readonly ResponseItem[] {
    return this.#items.map(({ item }) => item)
  }

  /** An item that arrives whole. */
  add(item: ResponseItem): void {
    const { index } = this.#place(item)
    this.#emit({ type: 'response.output_item.done', output_index: index, item })
  }

  /** More of the text of a message. */
  text(id: string, delta: string): void {
    const arriving = this.#arriving.get(id) ?? this.#beginText(id)
    arriving.text += delta
    const place = { ...itemPlace(arriving), content_index: 0 }
    this.#emit({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })
  }

  /** More reasoning. */
  reasoning(id: string, delta: string): void {
    const arriving = this.#arriving.get(id) ?? this.#beginReasoning(id)
    arriving.text += delta
    const place = { ...itemPlace(arriving), summary_index: 0 }
    this.#emit({ type: 'response.reasoning_summary_text.delta', ...place, delta })
  }

  /** More of the arguments of a call. */
  input(
    id: string,
    { callId, name, delta }: { readonly callId: string; readonly name: string; readonly delta: string },
  ): void {
    const arriving = this.#arriving.get(id) ?? this.#beginCall(id, callId, name)
    if (delta === '') return
    arriving.text += delta
    this.#emit({ type: 'response.function_call_arguments.delta', ...itemPlace(arriving), delta })
  }

  /** How much of an item has arrived, in characters. */
  lengthOf(id: string): number {
    return this.#arriving.get(id)?.text.length ?? 0
  }

  /** An item is complete. */
  end(id: string): void {
    const arriving = this.#arriving.get(id)
    if (arriving === undefined) return
    this.#arriving.delete(id)
    this.#finish(arriving, 'completed')
  }

  /** Items that do not count. */
  withdraw(ids: readonly string[]): void {
    const gone = new Set(ids)
    for (const id of gone) {
      const arriving = this.#arriving.get(id)
      this.#arriving.delete(id)
      if (arriving !== undefined) this.#finish(arriving, 'incomplete')
    }
    this.#items = this.#items.filter(({ item }) => !gone.has(item.id))
  }

  #beginText(id: string): Arriving {
    const arriving = this.#begin('text', { type: 'message', id, status: 'in_progress', role: 'assistant', content: [] })
    this.#emit({ type: 'response.content_part.added', ...itemPlace(arriving), content_index: 0, part: outputText('') })
    return arriving
  }

  #beginReasoning(id: string): Arriving {
    const arriving = this.#begin('reasoning', { type: 'reasoning', id, summary: [] })
    const part = { type: 'summary_text', text: '' } as const
    this.#emit({ type: 'response.reasoning_summary_part.added', ...itemPlace(arriving), summary_index: 0, part })
    return arriving
  }

  #beginCall(id: string, callId: string, name: string): Arriving {
    const item = { type: 'function_call', id, call_id: callId, name, arguments: '', status: 'in_progress' } as const
    return this.#begin('call', item)
  }

  #begin(kind: Arriving['kind'], item: ResponseItem): Arriving {
    const arriving: Arriving = { kind, placed: this.#place(item), text: '' }
    this.#arriving.set(item.id, arriving)
    return arriving
  }

  #place(item: ResponseItem): Placed {
    const placed: Placed = { index: this.#count++, item }
    this.#items.push(placed)
    this.#emit({ type: 'response.output_item.added', output_index: placed.index, item })
    return placed
  }

  #finish(arriving: Arriving, status: 'completed' | 'incomplete'): void {
    const { placed, text } = arriving
    const place = itemPlace(arriving)
    const { item } = placed
    if (item.type === 'message' && item.role === 'assistant') {
      const part = outputText(text)
      this.#emit({ type: 'response.output_text.done', ...place, content_index: 0, text, logprobs: [] })
      this.#emit({ type: 'response.content_part.done', ...place, content_index: 0, part })
      placed.item = { ...item, status, content: [part] }
    } else if (item.type === 'reasoning') {
      const part = { type: 'summary_text', text } as const
      this.#emit({ type: 'response.reasoning_summary_text.done', ...place, summary_index: 0, text })
      this.#emit({ type: 'response.reasoning_summary_part.done', ...place, summary_index: 0, part })
      placed.item = { ...item, summary: [part] }
    } else if (item.type === 'function_call') {
      this.#emit({ type: 'response.function_call_arguments.done', ...place, name: item.name, arguments: text })
      placed.item = { ...item, status, arguments: text }
    }
    this.#emit({ type: 'response.output_item.done', output_index: place.output_index, item: placed.item })
  }
}

function itemPlace({ placed }: Arriving): { readonly item_id: string; readonly output_index: number } {
  return { item_id: placed.item.id, output_index: placed.index }
}

function outputText(text: string): OutputText {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}
