// SPDX-License-Identifier: GPL-2.0-only
/* The PCI function: probe, remove, reset. Everything else is elsewhere. */

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "prawn.h"

static int map_bars(struct prawn_dev *pd)
{
	struct pci_dev *pdev = pd->pdev;

	if (pci_resource_len(pdev, 0) < PRAWN_BAR0_SIZE ||
	    pci_resource_len(pdev, 2) < PRAWN_BAR2_SIZE)
		return dev_err_probe(&pdev->dev, -ENODEV, "BARs too small\n");
	pd->bar0 = pci_iomap(pdev, 0, PRAWN_BAR0_SIZE);
	if (!pd->bar0)
		return -ENOMEM;
	pd->bar2 = pci_iomap(pdev, 2, PRAWN_BAR2_SIZE);
	if (!pd->bar2) {
		pci_iounmap(pdev, pd->bar0);
		return -ENOMEM;
	}
	return 0;
}

static void unmap_bars(struct prawn_dev *pd)
{
	pci_iounmap(pd->pdev, pd->bar2);
	pci_iounmap(pd->pdev, pd->bar0);
}

/* Memory that the card and the driver share, apart from contexts. */
static int alloc_shared(struct prawn_dev *pd)
{
	int err;

	err = prawn_admin_init(pd);
	if (err)
		return err;
	err = prawn_event_init(pd);
	if (err)
		goto err_admin;
	err = prawn_mgmt_init(pd);
	if (err)
		goto err_event;
	return 0;

err_event:
	prawn_event_exit(pd);
err_admin:
	prawn_admin_exit(pd);
	return err;
}

static void free_shared(struct prawn_dev *pd)
{
	prawn_mgmt_exit(pd);
	prawn_event_exit(pd);
	prawn_admin_exit(pd);
}

/* No operation is under way, none can begin: contexts, works, card. */
static void quiesce(struct prawn_dev *pd)
{
	prawn_wake_all(pd);
	prawn_ptp_exit(pd);
	cancel_delayed_work_sync(&pd->ping_work);
	cancel_delayed_work_sync(&pd->watch_work);
	synchronize_srcu(&pd->srcu);
	prawn_files_down(pd);
	/* a release that came in between is not in the list of files any more */
	synchronize_srcu(&pd->srcu);
	prawn_withdrawals_drop(pd);
	cancel_work_sync(&pd->event_work);
	prawn_hw_stop(pd);
}

static int prawn_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct prawn_dev *pd;
	int err;

	pd = prawn_dev_alloc(pdev);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	pci_set_drvdata(pdev, pd);
	err = pci_enable_device_mem(pdev);
	if (err)
		goto err_dev;
	err = pci_request_mem_regions(pdev, "prawn");
	if (err)
		goto err_disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_regions;
	err = map_bars(pd);
	if (err)
		goto err_regions;
	err = prawn_hw_identify(pd);
	if (err)
		goto err_bars;
	err = prawn_hw_reset(pd);
	if (err) {
		dev_err(&pdev->dev, "card does not come out of reset\n");
		goto err_bars;
	}
	err = alloc_shared(pd);
	if (err)
		goto err_bars;
	err = prawn_irq_init(pd);
	if (err)
		goto err_shared;
	pci_set_master(pdev);
	prawn_hw_start(pd);
	err = prawn_shrinker_init(pd);
	if (err)
		goto err_stop;
	prawn_ptp_init(pd);
	err = prawn_dev_publish(pd);
	if (err)
		goto err_shrinker;
	prawn_debugfs_add(pd);
	prawn_ping_start(pd);
	prawn_watch_start(pd);
	dev_info(&pdev->dev, "%s: node %u of %u, %u contexts, %u %s\n",
		 dev_name(&pd->dev), pd->node, pd->nodes, pd->contexts,
		 pd->vectors, pd->msix ? "MSI-X vectors" : "interrupt line");
	return 0;

err_shrinker:
	prawn_shrinker_free(pd->shrinker);
err_stop:
	WRITE_ONCE(pd->gone, true);
	quiesce(pd);
	prawn_irq_exit(pd);
err_shared:
	free_shared(pd);
err_bars:
	unmap_bars(pd);
err_regions:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
err_dev:
	put_device(&pd->dev);
	return err;
}

/* Files may stay open; what they hold is `pd` and nothing of the device. */
static void prawn_remove(struct pci_dev *pdev)
{
	struct prawn_dev *pd = pci_get_drvdata(pdev);

	prawn_dev_unpublish(pd);
	prawn_debugfs_remove(pd);
	prawn_shrinker_free(pd->shrinker);
	WRITE_ONCE(pd->gone, true);
	if (prawn_hw_vanished(pd))
		prawn_kill(pd, "removed");
	quiesce(pd);
	prawn_irq_exit(pd);
	free_shared(pd);
	unmap_bars(pd);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
	put_device(&pd->dev);
}

static void prawn_shutdown(struct pci_dev *pdev)
{
	struct prawn_dev *pd = pci_get_drvdata(pdev);

	WRITE_ONCE(pd->gone, true);
	quiesce(pd);
}

/* Reset from outside (sysfs, error recovery): contexts are lost, files stay. */
static void prawn_reset_prepare(struct pci_dev *pdev)
{
	struct prawn_dev *pd = pci_get_drvdata(pdev);

	WRITE_ONCE(pd->resetting, true);
	quiesce(pd);
}

static void prawn_reset_done(struct pci_dev *pdev)
{
	struct prawn_dev *pd = pci_get_drvdata(pdev);

	prawn_admin_reinit(pd);
	pd->event_head = 0;
	memset(pd->events.cpu, 0, pd->events.size);
	memset(pd->peer, 0, sizeof(pd->peer));
	pd->mgmt_busy = 0;
	pci_set_master(pdev);
	WRITE_ONCE(pd->dead, false);
	if (prawn_hw_reset(pd)) {
		prawn_kill(pd, "does not come back from reset");
		return;
	}
	prawn_hw_start(pd);
	prawn_ptp_init(pd);
	WRITE_ONCE(pd->resetting, false);
	prawn_ping_start(pd);
	prawn_watch_start(pd);
	dev_info(&pdev->dev, "reset; open files lost their contexts\n");
}

static pci_ers_result_t prawn_error_detected(struct pci_dev *pdev,
					     pci_channel_state_t state)
{
	struct prawn_dev *pd = pci_get_drvdata(pdev);

	prawn_kill(pd, "PCI error");
	return state == pci_channel_io_perm_failure ?
		       PCI_ERS_RESULT_DISCONNECT :
		       PCI_ERS_RESULT_NEED_RESET;
}

static const struct pci_error_handlers prawn_errors = {
	.error_detected = prawn_error_detected,
	.reset_prepare = prawn_reset_prepare,
	.reset_done = prawn_reset_done,
};

static const struct pci_device_id prawn_ids[] = {
	{ PCI_DEVICE(PRAWN_PCI_VENDOR_ID, PRAWN_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, prawn_ids);

static struct pci_driver prawn_driver = {
	.name = "prawn",
	.id_table = prawn_ids,
	.probe = prawn_probe,
	.remove = prawn_remove,
	.shutdown = prawn_shutdown,
	.err_handler = &prawn_errors,
};

static int __init prawn_init(void)
{
	int err = prawn_cdev_register();

	if (err)
		return err;
	prawn_debugfs_init();
	err = pci_register_driver(&prawn_driver);
	if (err) {
		prawn_debugfs_exit();
		prawn_cdev_unregister();
	}
	return err;
}

static void __exit prawn_exit(void)
{
	pci_unregister_driver(&prawn_driver);
	prawn_debugfs_exit();
	prawn_cdev_unregister();
}

module_init(prawn_init);
module_exit(prawn_exit);

MODULE_AUTHOR("The Prawn project");
MODULE_DESCRIPTION("Prawn: virtual memory-mapped communication card");
MODULE_LICENSE("GPL");
