import { ask } from './agent.js'

export default {
  async fetch() {
    return new Response(await ask())
  },
}
