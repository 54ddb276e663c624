import { describe, expect, it } from 'vitest';
import type { TemplateResponse } from '../api/api.gen.ts';
import { curlOf, quote, TEMPLATE_PLACE, templateCommand } from './curl.ts';
import {
  obstacleOf,
  oneTimeTemplate,
  problemsIn,
  type RentValues,
  rentBody,
} from './rent-request.ts';

const VALUES: RentValues = {
  pod_name: 'first',
  source: 'template',
  template_id: 't1',
  dockerfile_content: '',
  gpu_count: null,
  user_public_key: '',
  internal_ports: '',
  initial_port_count: null,
  environment: '',
  secret_names: '',
  volume_id: '',
  termination_hours: null,
  idle_shutdown_minutes: null,
  max_spend_usd: null,
  enable_jupyter: false,
};
const TEMPLATE = {
  id: 't1',
  name: 'base',
  internal_ports: [22],
  environment: { A: '1', B: '2' },
  docker_image: 'base',
} as unknown as TemplateResponse;

describe('the body', () => {
  it('leaves out what is empty', () => {
    expect(rentBody(VALUES, [])).toEqual({ pod_name: 'first', template_id: 't1' });
  });

  it('has chosen keys, secrets, limits and the Dockerfile', () => {
    const values: RentValues = {
      ...VALUES,
      source: 'dockerfile',
      dockerfile_content: 'FROM base',
      user_public_key: 'k2',
      secret_names: 'a\nb',
      max_spend_usd: 5,
      volume_id: 'v1',
    };
    const keys = [
      { id: 'k1', public_key: 'ssh one' },
      { id: 'k2', public_key: 'ssh two' },
    ];
    expect(rentBody(values, keys)).toEqual({
      pod_name: 'first',
      dockerfile_content: 'FROM base',
      max_spend_usd: 5,
      user_public_key: ['ssh two'],
      secret_names: ['a', 'b'],
      volume_id: 'v1',
    });
  });
});

describe('environment and ports', () => {
  it('have their problems at their fields, all of them', () => {
    const values = { ...VALUES, environment: 'A=1\n2B=x\nC', internal_ports: '22, 70000' };
    expect(problemsIn(values)).toEqual([
      { field: 'body.environment', message: 'Line 2: “2B” is not a name of a variable.' },
      { field: 'body.environment', message: 'Line 3 is not NAME=value.' },
      { field: 'body.internal_ports', message: '“70000” is not a port. Ports are 1 to 65535.' },
    ]);
    expect(problemsIn({ ...values, source: 'dockerfile' })).toEqual([]);
  });

  it('need a template for one pod, which keeps the rest of the chosen one', () => {
    expect(oneTimeTemplate(VALUES, TEMPLATE)).toBe(null);
    const changed = oneTimeTemplate({ ...VALUES, environment: 'B=3\nC=4' }, TEMPLATE);
    expect(changed).toMatchObject({
      name: 'base',
      one_time_template: true,
      internal_ports: [22],
      environment: { A: '1', B: '3', C: '4' },
    });
    const ports = oneTimeTemplate({ ...VALUES, internal_ports: '22 80' }, TEMPLATE);
    expect(ports?.internal_ports).toEqual([22, 80]);
  });

  it('name the first obstacle', () => {
    expect(obstacleOf(VALUES)).toBe(null);
    expect(obstacleOf({ ...VALUES, template_id: '' })).toBe('Choose a template.');
    expect(obstacleOf({ ...VALUES, source: 'dockerfile' })).toBe('Enter a Dockerfile.');
    expect(obstacleOf({ ...VALUES, environment: 'x' })).toBe('Line 1 is not NAME=value.');
  });
});

describe('the command', () => {
  const origin = 'http://localhost:1';

  it('quotes every word, and has the key as a variable', () => {
    const command = curlOf({ origin, path: '/x', body: { pod_name: "it's $HOME" } }, 'k1');
    expect(command).toContain(`-H "X-API-Key: $KEY"`);
    expect(command).toContain(`-H 'Idempotency-Key: k1'`);
    expect(command).toContain(String.raw`-d '{"pod_name":"it'\''s $HOME"}'`);
    expect(quote("a'b")).toBe(String.raw`'a'\''b'`);
  });

  it('passes the id of a created template on', () => {
    const create = templateCommand(origin, { name: 'n', docker_image: 'i' });
    expect(create).toMatch(/^TEMPLATE=\$\(curl [\s\S]* \| jq -r \.id\)$/);
    const rent = curlOf({ origin, path: '/x', body: { template_id: TEMPLATE_PLACE } });
    expect(rent).toContain(`-d '{"template_id":"'"$TEMPLATE"'"}'`);
  });
});
