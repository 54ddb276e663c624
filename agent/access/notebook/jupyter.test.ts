import { describe, expect, it } from 'vitest';
import { installFailure, nextStep, parseFindings } from './jupyter.ts';

const BARE = parseFindings('');

describe('the findings of an image', () => {
  it('are parsed line by line; invalid lines are ignored and the best Jupyter wins', () => {
    const text = [
      'jupyter=lab /opt/conda/bin/jupyter-lab 4.2.1',
      'jupyter=server /usr/bin/jupyter-server 2.14',
      'jupyter=lab relative/path 4',
      'python=/usr/bin/python3',
      'venv=yes',
      'tool=apt-get',
      'listens=22B8',
      'Traceback (most recent call last):',
    ].join('\n');
    expect(parseFindings(text)).toEqual({
      jupyter: { kind: 'lab', program: '/opt/conda/bin/jupyter-lab' },
      python: '/usr/bin/python3',
      venv: true,
      pip: false,
      tool: 'apt-get',
      listening: [8888],
    });
  });

  it('determine the next step', () => {
    const python = { ...BARE, python: '/usr/bin/python3' };
    const program = '/usr/bin/jupyter-lab';
    expect(nextStep({ ...BARE, jupyter: { kind: 'lab', program } }, [])).toMatchObject({
      do: 'start',
    });
    expect(nextStep({ ...python, venv: true, pip: true }, [])).toMatchObject({ way: 'venv' });
    expect(nextStep({ ...python, pip: true, tool: 'apk' }, [])).toMatchObject({ way: 'pip' });
    expect(nextStep({ ...python, tool: 'apt-get' }, [])).toMatchObject({
      way: 'tool',
      with: 'apt-get',
    });
    expect(nextStep(BARE, [])).toMatchObject({ reason: 'NotebookNoPython' });
    expect(nextStep({ ...BARE, tool: 'apk' }, ['tool'])).toMatchObject({
      reason: 'NotebookNoPython',
    });
    expect(nextStep(python, [])).toMatchObject({ reason: 'NotebookInstallFailed' });
    expect(nextStep({ ...python, venv: true, tool: 'dnf' }, ['venv'])).toMatchObject({
      reason: 'NotebookInstallFailed',
    });
  });
});

it.each([
  ['E: Unable to locate package', 'NotebookInstallFailed'],
  ['Could not resolve host: pypi.org', 'NotebookSourceUnreachable'],
  ['ERROR: No matching distribution found for jupyterlab', 'NotebookSourceUnreachable'],
  ['WARNING: fetching main: temporary error (try again later)', 'NotebookSourceUnreachable'],
  ['OSError: [Errno 28] No space left on device', 'NotebookInstallFailed'],
])('classifies an installation whose output ends with "%s" as %s', (lines, reason) => {
  const failure = installFailure(lines);
  expect(failure.reason).toBe(reason);
  expect(failure.message).toContain(lines);
});
