import { ask } from './agent.js'

globalThis.answer = ask()
