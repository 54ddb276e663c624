/** A refusal in restic's protocol: a status and a short text, outside the error envelope of the API. */

/** Of the protocol and of what rest-server, restic's own server, answers. */
export type ResticStatus = 400 | 401 | 403 | 404 | 408 | 413 | 416 | 503 | 507;

/** `message` is plain ASCII, for restic shows it as the status line's reason. */
export class ResticRefusal extends Error {
  override name = 'ResticRefusal';
  readonly status: ResticStatus;

  constructor(status: ResticStatus, message: string) {
    super(message);
    this.status = status;
  }
}

/** What is not there: restic tells it from a failure by the status. */
export function absent(): ResticRefusal {
  return new ResticRefusal(404, 'Not found');
}
