/** Nodes as text for a terminal. Pure. */
import type {
  BlockingReason,
  PortalNode,
  Verification,
} from '../central/providers/node.schemas.ts';

/** One line for each node, followed by its notice and by the remedies of what prevents rentals. */
export function nodesText(nodes: readonly PortalNode[]): string {
  if (nodes.length === 0) return 'No nodes. Add one: npm run provider -- add --help\n';
  return nodes.map((node) => `${nodeLine(node)}\n${detailsOf(node)}`).join('');
}

/** The node with the checks of its last verdict. */
export function verdictText(node: PortalNode, verdict: Verification): string {
  const { checked_at: at, validator_hotkey: by, verified } = verdict;
  const result = verified ? 'verified' : 'failed';
  const summary = at === null ? 'not checked yet' : `${result} at ${at.slice(0, 19)} UTC by ${by}`;
  const unknown = verdict.checks.filter(isUnknown);
  // A host that does not answer leaves almost every check without a result.
  const isCollapsed = unknown.length > MAX_UNKNOWN_LINES;
  const listed = isCollapsed ? verdict.checks.filter((check) => !isUnknown(check)) : verdict.checks;
  const checks = listed.map((check) => `  ${markOf(check)} ${check.name}: ${check.message}\n`);
  if (isCollapsed) checks.push(`  -      ${unknown.length} checks not run\n`);
  return clean(`${nodeLine(node)}\n  verdict: ${summary}\n${checks.join('')}`) + detailsOf(node);
}

type VerdictCheck = Verification['checks'][number];

const MAX_UNKNOWN_LINES = 5;

/** Returns true for a check without a result, which the validator reports as passed with this message. */
function isUnknown({ passed, message }: VerdictCheck): boolean {
  return passed && message === 'unknown';
}

/** Returns the mark before a check: `note` for a failure that is only recorded and does not affect the verdict. */
function markOf(check: VerdictCheck): string {
  if (isUnknown(check)) return '-     ';
  if (check.passed) return 'ok    ';
  return check.message.includes('(recorded only') ? 'note  ' : 'failed';
}

function nodeLine(node: PortalNode): string {
  const { id, status, executor_ip_address: host, executor_ip_port: port } = node;
  const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const free = `${node.available_gpu_count} of ${node.gpu_count} free`;
  return clean(
    `${id}  ${status}  ${place}  ${node.gpu_count} × ${node.gpu_type} (${free})  ${priceText(node)}`,
  );
}

export function priceText({ price_per_gpu: usd }: PortalNode): string {
  return `$${usd} per GPU and hour`;
}

function detailsOf({ notice_period: notice, blocking_reasons: reasons }: PortalNode): string {
  const announced = notice === null ? '' : `  notice: ${noticeText(notice)}\n`;
  return announced + reasons.map(reasonText).join('');
}

export function noticeText(notice: NonNullable<PortalNode['notice_period']>): string {
  const { permanent_removal, period_in_minute: minutes, starting_at: at, reason } = notice;
  const what = permanent_removal ? 'removal' : `maintenance of ${minutes} minutes`;
  return clean(`${what} at ${at}${reason === null ? '' : ` (${reason})`}`);
}

function reasonText(reason: BlockingReason): string {
  const { code, message, measured, required, fix, fix_command: run, verify_command: test } = reason;
  const needs = reason.requires === null ? '' : `    (requires ${reason.requires})`;
  return [
    `  ${code}: ${message} (measured: ${measured}; required: ${required})`,
    `    remedy: ${fix}`,
    ...(run === null ? [] : [`    run:    ${run}${needs}`]),
    ...(test === null ? [] : [`    test:   ${test}`]),
  ]
    .map((line) => `${clean(line)}\n`)
    .join('');
}

/** Removes control characters, which could change the terminal; keeps line breaks. */
function clean(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '');
}
