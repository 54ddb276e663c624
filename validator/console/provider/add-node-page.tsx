import './provider.css';
import { useLocation } from 'wouter';
import type { SharedConfig } from '../api/portal.gen.ts';
import { CommandBlock } from '../parts/command-block.tsx';
import { NumberField, SelectField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatUsd } from '../parts/format.ts';
import { Page } from '../parts/page.tsx';
import { Panel, QueryContent } from '../parts/panel.tsx';
import { paths } from '../paths.ts';
import { usePortal, usePortalAction } from '../session/queries.tsx';
import { doctorCommand } from './doctor-command.ts';
import { priceProblem, priceRange } from './price-advice.ts';
import { PricePanels } from './price-panel.tsx';

const AGENT_PORT = 8080;
const MAX_GPUS = 64;

export function AddNodePage() {
  const config = usePortal('GET /v1/shared-config', {});
  return (
    <Page
      title="Add a node"
      lead="A node is a host with GPUs that runs the agent. Adding it costs nothing."
    >
      <QueryContent query={config}>{(data) => <AddNodeForm config={data} />}</QueryContent>
      <Panel title="What happens next">
        <ol className="first-steps">
          <li>
            The node gets an id. You set it on the host, enrol the agent’s key and start the agent.
          </li>
          <li>A validator contacts the agent and checks GPUs, network, disk and software.</li>
          <li>The page of the node shows each check, and a remedy for each failure.</li>
          <li>When all checks pass, renters find the node. You earn from its first rental on.</li>
        </ol>
      </Panel>
    </Page>
  );
}

function AddNodeForm({ config }: { config: SharedConfig }) {
  const [, navigate] = useLocation();
  const add = usePortalAction('POST /executors');
  const form = useForm(
    {
      gpu_type: '',
      gpu_count: 1 as number | null,
      ip_address: '',
      port: AGENT_PORT as number | null,
      price_per_gpu: null as number | null,
    },
    async (body) => {
      const { data } = await add.mutateAsync({ body });
      navigate(paths.providerNode(data.id));
    },
  );
  const { gpu_type: gpuType, gpu_count: gpuCount, price_per_gpu: price } = form.values;
  const range = priceRange(config, gpuType);
  const problem = priceProblem(price, range);
  return (
    <>
      <Panel title="The node">
        <Form form={form} action="Add the node">
          <SelectField
            form={form}
            name="gpu_type"
            label="GPU"
            hint="The model as the driver reports it (nvidia-smi -L). A validator compares it with the host."
            isRequired
            options={[
              { value: '', label: 'Choose the GPU' },
              ...Object.entries(config.machine_prices).map(([name, usd]) => ({
                value: name,
                label: `${name} (reference ${formatUsd(usd)} per hour)`,
              })),
            ]}
          />
          <NumberField
            form={form}
            name="gpu_count"
            label="Number of GPUs"
            hint="All GPUs that the agent reports. Renters can rent a part if you allow it later."
            min={1}
            max={MAX_GPUS}
            step={1}
            isRequired
          />
          <TextField
            form={form}
            name="ip_address"
            label="IP address"
            hint="The public IPv4 or IPv6 address at which validators and renters reach the host. No host name."
            placeholder="203.0.113.7"
            isRequired
          />
          <NumberField
            form={form}
            name="port"
            label="Port of the agent"
            hint={`The port that a validator reaches, ${AGENT_PORT} unless you have set AGENT_PORT. Renters also need the ports of AGENT_PORT_RANGE.`}
            min={1}
            max={65_535}
            step={1}
            isRequired
          />
          <NumberField
            form={form}
            name="price_per_gpu"
            label="Price"
            unit="USD per GPU and hour"
            hint={
              <>
                {problem === null ? null : <strong className="problem">{problem} </strong>}
                {range === null
                  ? 'Choose the GPU to see the allowed range.'
                  : `${formatUsd(range.min)} to ${formatUsd(range.max)}; empty for the reference price of ${formatUsd(range.reference)}.`}{' '}
                You can change it at any time; running pods keep their price.
              </>
            }
            min={0}
          />
        </Form>
      </Panel>
      {range === null || problem !== null || !isCount(gpuCount) ? null : (
        <PricePanels gpuType={gpuType} gpuCount={gpuCount} price={price} range={range} />
      )}
      <TestHost address={form.values.ip_address} />
    </>
  );
}

function TestHost({ address }: { address: string }) {
  return (
    <Panel title="Test the host before you add it">
      <p>
        The marketplace can check a node only after you have added it. This command tests the host
        with the same limits: Docker, GPUs, firewall, ports, disks and clock. It names a remedy for
        each problem.
      </p>
      <CommandBlock
        label="Run it on the host, as the user of the agent"
        command={doctorCommand(address, window.location.origin)}
      />
    </Panel>
  );
}

function isCount(count: number | null): count is number {
  return Number.isInteger(count) && count !== null && count >= 1 && count <= MAX_GPUS;
}
