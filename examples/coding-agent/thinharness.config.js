// `npx thinharness chat` reads this file. Begin in `agent.js`.
import { modes } from './agent.js'

// A conversation begins in the first mode; `/mode build` changes it.
export { modes }

// Of `npx thinharness run`, which has no modes.
export default modes.build
