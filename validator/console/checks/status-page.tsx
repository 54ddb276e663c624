import { Link } from 'wouter';
import { Facts } from '../parts/facts.tsx';
import { Page } from '../parts/page.tsx';
import { QueryPanel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { paths } from '../paths.ts';
import { useApi } from '../session/queries.tsx';

const REFETCH_MS = 15_000;

/** State of the validator: its key, its newest cycle and epoch, and what waits for delivery. */
export function ValidatorPage() {
  const status = useApi('GET /operator/validator', {}, { refetchMs: REFETCH_MS });
  return (
    <Page title="Validator">
      <QueryPanel title="Status" query={status}>
        {(data) => (
          <Facts
            facts={[
              ['Key', <code key="key">{data.hotkey}</code>],
              ['Version', data.version],
              [
                'Newest cycle',
                data.cycle === null ? (
                  'none yet'
                ) : (
                  <>
                    <Link href={paths.validatorCycle(data.cycle)}>{data.cycle}</Link>, ended{' '}
                    <Time value={data.cycle_ended_at} relative />
                  </>
                ),
              ],
              [
                'Newest epoch',
                data.epoch === null ? (
                  'none yet'
                ) : (
                  <>
                    <Link href={paths.validatorEpoch(data.epoch)}>{data.epoch}</Link>, computed{' '}
                    <Time value={data.epoch_computed_at} relative />
                  </>
                ),
              ],
              [
                'Waiting messages',
                <>
                  {data.messages_waiting}
                  {data.oldest_message_at === null ? null : (
                    <>
                      , the oldest since <Time value={data.oldest_message_at} relative />
                    </>
                  )}
                </>,
              ],
              ['Messages that are not sent any more', data.messages_parked],
            ]}
          />
        )}
      </QueryPanel>
    </Page>
  );
}
