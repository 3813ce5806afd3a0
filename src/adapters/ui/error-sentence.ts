import type { HarnessErrorCode } from '#contracts/errors.js'

/** What a reader gets of an error: messages of errors can name paths, hosts and other people's words. */
const SENTENCES: { readonly [Code in HarnessErrorCode]: string } = {
  invalid_options: 'The request has an option that is not valid.',
  invalid_state: 'The run cannot do this in its present state.',
  invalid_answer: 'The answer does not fit the question.',
  closed: 'The server is shutting down.',
  missing_model: 'No model is configured.',
  missing_key: 'The model cannot be reached: no key is configured.',
  missing_dependency: 'The server lacks a package that this needs.',
  provider_error: 'The model could not be reached, or refused the request.',
  context_overflow: 'The conversation is too long for the model.',
  limit_reached: 'The run has reached a limit.',
  tool_retries_exceeded: 'A tool failed too often.',
  output_validation_failed: 'The model gave no answer in the expected form.',
  unexpected_model_behavior: 'The model gave a reply that cannot be used.',
  cancelled_by_hook: 'The run was stopped by the application.',
  cancelled: 'The run was cancelled.',
  interrupted: 'The run was interrupted. It can be continued.',
  hook_failed: 'The application failed.',
  guard_blocked: 'The application does not allow this.',
  store_failure: 'The run could not be stored.',
  invalid_log: 'The stored run cannot be read.',
  run_not_found: 'There is no such run.',
  run_exists: 'There is a run with this id already.',
  run_owned: 'Another process executes this run.',
  replay_mismatch: 'The run does not replay.',
  error: 'Something went wrong.',
}

/** The sentence of a code. */
export function errorSentence({ code }: { readonly code: string }): string {
  return Object.hasOwn(SENTENCES, code) ? SENTENCES[code as HarnessErrorCode] : SENTENCES.error
}
