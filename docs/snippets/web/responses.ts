import OpenAI from 'openai'

const client = new OpenAI({ baseURL: 'http://localhost:3000/v1', apiKey: 'none' })

/** Asks the agent, and approves every call for which it needs a person. */
export async function ask(input: string, { responses } = client): Promise<string> {
  let response = await responses.create({ model: 'support', input })
  for (let waiting = response.metadata?.['pending']; waiting !== undefined; waiting = response.metadata?.['pending']) {
    const items = JSON.parse(waiting) as readonly { readonly callId: string }[]
    response = await responses.create({
      model: 'support',
      previous_response_id: response.id,
      input: items.map(({ callId }) => ({
        type: 'mcp_approval_response',
        approval_request_id: callId,
        approve: true,
      })),
    })
  }
  return response.output_text
}
