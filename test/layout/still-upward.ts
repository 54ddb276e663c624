/** Imports that still point upward: each is to be turned round, then removed from this list. */
export const STILL_UPWARD: readonly string[] = [
  'validator/central/market/machine-requests/portal-request.routes.ts imports ../../providers/portal-answer.ts',
  'validator/central/market/machine-requests/portal-request.service.ts imports ../../providers/node.service.ts',
  'validator/central/market/machine-requests/portal-request.service.ts imports ../../providers/portal-answer.ts',
  'validator/central/market/notices/notice.routes.ts imports ../../providers/portal-answer.ts',
  'validator/central/market/notices/notice.service.ts imports ../../providers/node.service.ts',
];
