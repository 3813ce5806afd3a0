/** A request that is not of the form of its protocol: handlers answer 400. */
export class InputError extends TypeError {
  /** The part of the request that is wrong. */
  readonly param: string | undefined

  constructor(message: string, param?: string) {
    super(message)
    this.param = param
  }
}
