/** Turns an error into words for a person at a screen: what failed, what to do, and where. Pure. */
import { type ApiFailure, UNREACHABLE } from '../api/failure.ts';
import { paths } from '../paths.ts';
import { otherProblems, problemsOf } from './form-problems.ts';
import { wordsOf } from './format.ts';

export type PageLink = { path: string; title: string };

export type FailureWords = {
  message: string;
  hint: string;
  /** Page on which the reader can continue; null if there is none. */
  link: PageLink | null;
  /** Problems that no field on the screen shows. */
  problems: readonly string[];
};

/** Surroundings of the message on the page. */
export type FailurePlace = {
  /** Labels of a form's fields by their names; absent outside a form. */
  labels?: ReadonlyMap<string, string>;
  /** True if a button below the message tries again. */
  hasRetry?: boolean;
};

/** Returns the words for an error. The server's hint is used if it is for people. */
export function describeFailure(failure: ApiFailure, place: FailurePlace = {}): FailureWords {
  const { labels, hasRetry = false } = place;
  const { code, hint, problems, rejectedToken } = failure.facts;
  const own = BY_CODE[code];
  const plain = { message: own?.message ?? failure.message, link: own?.link ?? null, problems: [] };
  if (rejectedToken !== undefined) return { ...plain, ...SESSION_ENDED };
  if (code === UNREACHABLE) return { ...plain, hint: reachHint(labels !== undefined, hasRetry) };
  if (problems.length > 0) return { ...plain, ...describeProblems(failure, labels ?? new Map()) };
  if (!isForPrograms(hint)) return { ...plain, hint };
  return { ...plain, hint: own?.hint ?? hintOfStatus(failure.facts.status) };
}

const SESSION_ENDED = {
  message: 'Your session has ended',
  hint: 'Log in to continue on this page.',
};

function reachHint(isForm: boolean, hasRetry: boolean): string {
  if (isForm) {
    return 'Check your connection, then send the form again. What you have typed stays in the form.';
  }
  return `Check your connection, then ${hasRetry ? 'choose “Try again”' : 'try again'}.`;
}

/** Refers to fields of the form by their labels. Lists the problems of all other parts of the request. */
function describeProblems(failure: ApiFailure, labels: ReadonlyMap<string, string>) {
  const marked = [...labels].filter(([name]) => problemsOf(failure, name).length > 0);
  const others = otherProblems(failure, [...labels.keys()]);
  const problems = [
    ...new Set(others.map(({ field, message }) => `${fieldWords(field)}: ${message}`)),
  ];
  if (marked.length > 0) {
    const names = marked.map(([, label]) => `“${label}”`).join(', ');
    const what = marked.length === 1 ? 'the marked field' : 'the marked fields';
    return {
      message: 'The form cannot be used as it is',
      hint: `Correct ${what}: ${names}.`,
      problems,
    };
  }
  if (failure.facts.problems.every(({ field }) => !field.startsWith('body.'))) {
    return { message: 'The address of this page is not right', hint: ADDRESS_HINT, problems };
  }
  return { hint: 'Correct what the list names, then try again.', problems };
}

const ADDRESS_HINT = 'Correct the part that the list names, or open the page from the navigation.';

/** `body.ports[2]` is “Ports 2”; positions count from 0, as in the API. */
function fieldWords(field: string): string {
  const path = field.replace(/^(?:body|query|path|header)\./, '');
  return wordsOf(path.replaceAll(/[[\]]+/g, ' ').trim());
}

type OwnWords = { message?: string; hint: string; link?: PageLink };

const LATER = { hint: 'Try again in a minute.' };
const RELOAD = { hint: 'Load the page again to see the present state, then try again.' };
const MARKET = { path: paths.market, title: 'Market' };
const NODE_CHOICE = { hint: 'Choose another node.', link: MARKET };
const POD_LIST = {
  hint: 'The pod may have been removed, or belong to another account.',
  link: { path: paths.pods, title: 'Your pods' },
};

/** Words for codes. A `hint` replaces a hint of the server that is for programs. */
const BY_CODE: Readonly<Record<string, OwnWords>> = {
  ticket_invalid: {
    message: 'This log-in link does not work',
    hint: 'A link logs in once, and only for a limited time. Open a new link, or log in with your password.',
  },
  insufficient_balance: {
    hint: 'Add funds, then try again.',
    link: { path: paths.money, title: 'Money' },
  },
  email_not_verified: {
    hint: 'Open the link in the mail that we sent to your address, then try again.',
    link: { path: paths.account, title: 'Your account' },
  },
  pod_not_found: POD_LIST,
  POD_NOT_FOUND: POD_LIST,
  node_not_found: { hint: 'The node may have left the market.' },
  node_not_verified: NODE_CHOICE,
  node_unavailable: NODE_CHOICE,
  template_not_found: {
    hint: 'The template may have been deleted, or belong to another account.',
    link: { path: paths.templates, title: 'Templates' },
  },
  volume_not_found: {
    hint: 'The volume may have been deleted, or belong to another account.',
    link: { path: paths.volumes, title: 'Your volumes' },
  },
  idempotency_key_invalid: RELOAD,
  idempotency_key_reused: RELOAD,
  idempotency_in_progress: { hint: 'The first request still runs. Try again in a few seconds.' },
  pod_state_conflict: { hint: 'Wait until the status of the pod allows this, then try again.' },
  auth_failed: LATER,
  clock_or_restart: LATER,
  tls_required: {
    hint: 'Open the console over an encrypted connection. Replace a secret that you have sent.',
  },
  API_KEY_BUDGET_EXCEEDED: { hint: 'Raise the budget of the API key, then try again.' },
  BACKUP_STORAGE_BUSY: {
    hint: 'Wait until the running backup or restore has ended, or cancel it on the tab “Backups” of the pod.',
  },
};

/** Matches hints that name requests, headers and other words of programs. */
const FOR_PROGRAMS = new RegExp(
  [
    '\\b(?:GET|POST|PUT|PATCH|DELETE) /',
    '\\b(?:X-API-Key|Idempotency-Key|Retry-After|Content-Type|HTTPS?|credential|same key)\\b',
    '/v1/',
    '\\b(?:body|path|query|header)\\.\\w',
    '\\b(?:the|this) (?:resource|request(?! id)|audience|path)\\b',
    'Allow header',
    '^(?:Read the pod|Sign|Set the clock)\\b',
  ].join('|'),
);

export function isForPrograms(hint: string): boolean {
  return FOR_PROGRAMS.test(hint);
}

const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'Check what you have entered.',
  403: 'Your account may not do this.',
  404: 'It may have been removed. Load the page again.',
  409: RELOAD.hint,
  429: LATER.hint,
};

function hintOfStatus(status: number): string {
  if (status >= 500) return LATER.hint;
  return BY_STATUS[status] ?? 'Change what the message names, then try again.';
}
