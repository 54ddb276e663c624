import { Component, type ReactNode } from 'react';
import { FailureNotice } from './failure-notice.tsx';

type Props = { children: ReactNode; onRetry?: (() => void) | undefined };
type State = { error: unknown };

/** Shows an error of its children in their place; the rest of the page works on. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return <FailureNotice error={error} retry={() => this.retry()} />;
  }

  private retry(): void {
    this.props.onRetry?.();
    this.setState({ error: null });
  }
}
